#include "common/onnx/constants.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/onnx/attributes.h"
#include "common/status/status.h"
#include "common/weights/tensor_file.h"

namespace convlab {
namespace {

using onnx::NodeProto;
using onnx::TensorProto;

// "FLOAT16 (10)"
std::string TypeName(int type) {
  return absl::StrCat(
      TensorProto::DataType_IsValid(type)
          ? TensorProto::DataType_Name(static_cast<TensorProto::DataType>(type))
          : "unknown",
      " (", type, ")");
}

// The values of a tensor that are raw bytes, or one by one in a field of their
// type.
template <typename Value, typename Stored>
absl::StatusOr<std::vector<Value>> Values(const TensorProto& tensor,
                                          const Stored& stored, int64_t count) {
  const std::string& raw = tensor.raw_data();
  const uint64_t found =
      raw.empty() ? stored.size() : raw.size() / sizeof(Value);
  if (raw.size() % sizeof(Value) != 0 ||
      found != static_cast<uint64_t>(count) ||
      (!raw.empty() && !stored.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shape ", ShapeString({tensor.dims().begin(), tensor.dims().end()}),
        " is ", count, " values, but there are ", stored.size(), " and ",
        raw.size(), " raw bytes"));
  }
  if (raw.empty()) return std::vector<Value>(stored.begin(), stored.end());
  std::vector<Value> values(count);
  std::memcpy(values.data(), raw.data(), raw.size());
  return values;
}

absl::StatusOr<Constant> Read(const TensorProto& tensor) {
  if (tensor.data_location() == TensorProto::EXTERNAL ||
      tensor.external_data_size() > 0) {
    std::string location;
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location") location = " " + Quoted(entry.value());
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the data are in another file", location,
                     ", expected in the file itself"));
  }
  if (tensor.has_segment()) {
    return absl::InvalidArgumentError("the data are a segment, expected all");
  }
  Constant constant;
  constant.shape = {tensor.dims().begin(), tensor.dims().end()};
  ASSIGN_OR_RETURN(const int64_t count, ElementCount(constant.shape));
  switch (tensor.data_type()) {
    case TensorProto::FLOAT: {
      ASSIGN_OR_RETURN(constant.floats,
                       Values<float>(tensor, tensor.float_data(), count));
      return constant;
    }
    case TensorProto::INT64: {
      ASSIGN_OR_RETURN(constant.integers,
                       Values<int64_t>(tensor, tensor.int64_data(), count));
      break;
    }
    case TensorProto::INT32: {
      ASSIGN_OR_RETURN(const auto values,
                       Values<int32_t>(tensor, tensor.int32_data(), count));
      constant.integers.assign(values.begin(), values.end());
      break;
    }
    case TensorProto::BOOL: {
      ASSIGN_OR_RETURN(const auto values,
                       Values<uint8_t>(tensor, tensor.int32_data(), count));
      constant.integers.assign(values.begin(), values.end());
      break;
    }
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("the type is ", TypeName(tensor.data_type()),
                       ", expected FLOAT (1), or INT64 (7) in a shape"));
  }
  constant.is_float = false;
  return constant;
}

Constant Integers(std::vector<int64_t> values) {
  Constant constant;
  constant.shape = {static_cast<int64_t>(values.size())};
  constant.integers = std::move(values);
  constant.is_float = false;
  return constant;
}

absl::StatusOr<Constant> ConstantOf(const NodeProto& node) {
  Attributes attributes(node);
  const onnx::AttributeProto* found = attributes.Any("value");
  if (found != nullptr && found->has_t()) return Read(found->t());
  Constant constant;
  if ((found = attributes.Any("value_float")) != nullptr) {
    constant.floats = {found->f()};
    return constant;
  }
  if ((found = attributes.Any("value_floats")) != nullptr) {
    constant.floats = {found->floats().begin(), found->floats().end()};
    constant.shape = {found->floats_size()};
    return constant;
  }
  if ((found = attributes.Any("value_int")) != nullptr) {
    constant = Integers({found->i()});
    constant.shape.clear();
    return constant;
  }
  if ((found = attributes.Any("value_ints")) != nullptr) {
    return Integers({found->ints().begin(), found->ints().end()});
  }
  return absl::InvalidArgumentError(
      "it has no value, value_float, value_floats, value_int or value_ints");
}

// The index or the bound `at`, which counts from the end if it is negative,
// within 0 to `size`.
int64_t Bound(int64_t at, int64_t size) {
  return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
}

absl::StatusOr<Constant> ShapeOf(const NodeProto& node,
                                 const std::vector<int64_t>& shape) {
  Attributes attributes(node);
  const auto size = static_cast<int64_t>(shape.size());
  ASSIGN_OR_RETURN(int64_t start, attributes.Integer("start", 0));
  ASSIGN_OR_RETURN(int64_t end, attributes.Integer("end", size));
  RETURN_IF_ERROR(attributes.ExpectNoOthers());
  start = Bound(start, size);
  end = std::max(start, Bound(end, size));
  return Integers({shape.begin() + start, shape.begin() + end});
}

absl::StatusOr<Constant> Gather(const Constant& values,
                                const Constant& indices) {
  Constant gathered = Integers({});
  const auto size = static_cast<int64_t>(values.integers.size());
  if (values.is_float || values.shape.size() != 1 || indices.is_float) {
    return absl::InvalidArgumentError("expected integers of one dimension");
  }
  for (int64_t index : indices.integers) {
    if (index < 0) index += size;
    if (index < 0 || index >= size) {
      return absl::InvalidArgumentError(
          absl::StrCat("an index is outside of ", size, " values"));
    }
    gathered.integers.push_back(values.integers[index]);
  }
  gathered.shape = indices.shape;
  return gathered;
}

absl::StatusOr<Constant> Transposed(const Constant& matrix) {
  if (!matrix.is_float || matrix.shape.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("it transposes a constant of shape ",
                     ShapeString(matrix.shape), ", expected a matrix"));
  }
  const int64_t rows = matrix.shape[0], columns = matrix.shape[1];
  Constant transposed;
  transposed.shape = {columns, rows};
  transposed.floats.resize(matrix.floats.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      transposed.floats[column * rows + row] =
          matrix.floats[row * columns + column];
    }
  }
  return transposed;
}

}  // namespace

// Every value that has at least four bytes in the file is decoded, and may be
// transposed and given another name.
Constants::Constants(const onnx::GraphProto& graph)
    : left_(static_cast<int64_t>(graph.ByteSizeLong()) + 4096) {
  for (const TensorProto& tensor : graph.initializer()) {
    stored_.emplace(tensor.name(), &tensor);
  }
}

absl::StatusOr<Constant> Constants::Get(const std::string& name) {
  absl::StatusOr<Constant> found;
  const auto computed = computed_.find(name);
  const auto stored = stored_.find(name);
  if (computed != computed_.end()) {
    found = computed->second;
  } else if (stored == stored_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no constant ", Quoted(name)));
  } else {
    found = Read(*stored->second);
    RETURN_IF_ERROR(Annotate(found.status(), "initializer " + Quoted(name)));
  }
  left_ -= static_cast<int64_t>(found->floats.size() + found->integers.size());
  if (left_ < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(name),
                     " and other constants are used again and again, expected "
                     "about once"));
  }
  return found;
}

absl::StatusOr<Constant> Constants::Weights(const std::string& name, int rank) {
  ASSIGN_OR_RETURN(Constant constant, Get(name));
  if (!constant.is_float) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(name), " has integers, expected float32"));
  }
  if (rank >= 0 && constant.shape.size() != static_cast<size_t>(rank)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(name), " has shape ", ShapeString(constant.shape), ", expected ",
        rank, rank == 1 ? " dimension" : " dimensions"));
  }
  const auto bad =
      std::find_if(constant.floats.begin(), constant.floats.end(),
                   [](float value) { return !std::isfinite(value); });
  if (bad != constant.floats.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(name), " is ", *bad, " at index ", bad - constant.floats.begin(),
        ", expected a finite number"));
  }
  return constant;
}

absl::Status Constants::Compute(const NodeProto& node,
                                const std::vector<int64_t>& shape) {
  ASSIGN_OR_RETURN(Constant result, Result(node, shape));
  computed_.emplace(node.output(0), std::move(result));
  return absl::OkStatus();
}

absl::StatusOr<Constant> Constants::Result(const NodeProto& node,
                                           const std::vector<int64_t>& shape) {
  const std::string& type = node.op_type();
  if (type == "Constant") return ConstantOf(node);
  if (type == "Shape" && !shape.empty()) return ShapeOf(node, shape);
  if (type == "Concat") {
    Constant all = Integers({});
    for (const std::string& name : node.input()) {
      ASSIGN_OR_RETURN(const Constant part, Get(name));
      if (part.is_float || part.shape.size() != 1) {
        return absl::InvalidArgumentError("expected integers of one dimension");
      }
      all.integers.insert(all.integers.end(), part.integers.begin(),
                          part.integers.end());
    }
    all.shape = {static_cast<int64_t>(all.integers.size())};
    return all;
  }
  if (node.input_size() == 0) {
    return absl::InvalidArgumentError("it has no input");
  }
  ASSIGN_OR_RETURN(Constant first, Get(node.input(0)));
  if (type == "Identity") return first;
  if (type == "Shape") return ShapeOf(node, first.shape);
  if (type == "Transpose") {
    Attributes attributes(node);
    RETURN_IF_ERROR(attributes.Expect("perm", std::vector<int64_t>{1, 0}));
    return Transposed(first);
  }
  if (type == "Gather" && node.input_size() == 2) {
    Attributes attributes(node);
    RETURN_IF_ERROR(attributes.Expect("axis", int64_t{0}));
    ASSIGN_OR_RETURN(const Constant indices, Get(node.input(1)));
    return Gather(first, indices);
  }
  // A shape's single entry, with a dimension or without.
  const bool single = !first.is_float && first.integers.size() == 1;
  if (single && type == "Unsqueeze") return Integers(first.integers);
  if (single && type == "Squeeze") {
    first.shape.clear();
    return first;
  }
  if (!first.is_float && type == "Cast") {
    Attributes attributes(node);
    ASSIGN_OR_RETURN(const int64_t to, attributes.Integer("to", 0));
    if (to == TensorProto::INT64 || to == TensorProto::INT32) return first;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "operator ", Quoted(type), " is not computed for constants of shape ",
      ShapeString(first.shape),
      ", expected the shape of a Reshape, or a matrix transposed"));
}

}  // namespace convlab
