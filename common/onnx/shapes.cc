#include "common/onnx/shapes.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/onnx/constants.h"
#include "common/weights/tensor_file.h"

namespace convlab {
namespace {

// "[N,-1]"
std::string Text(const std::vector<int64_t>& dimensions) {
  return absl::StrCat("[",
                      absl::StrJoin(dimensions, ",",
                                    [](std::string* out, int64_t dimension) {
                                      if (dimension == kAnyBatch) {
                                        out->append("N");
                                      } else {
                                        absl::StrAppend(out, dimension);
                                      }
                                    }),
                      "]");
}

// The shape in the words of its file: [batch,1,28,width].
std::string Text(const onnx::TensorShapeProto& shape) {
  std::vector<std::string> dimensions;
  for (const auto& dimension : shape.dim()) {
    dimensions.push_back(
        dimension.has_dim_value()   ? absl::StrCat(dimension.dim_value())
        : dimension.has_dim_param() ? Quoted(dimension.dim_param())
                                    : "?");
  }
  return absl::StrCat("[", absl::StrJoin(dimensions, ","), "]");
}

}  // namespace

std::vector<int64_t> Images::Dimensions() const {
  if (flat) return {batch, shape.values()};
  if (channels_last) return {batch, shape.size, shape.size, shape.channels};
  return {batch, shape.channels, shape.size, shape.size};
}

std::string Images::ToString() const { return Text(Dimensions()); }

absl::StatusOr<Images> InputImages(const onnx::ValueInfoProto& input) {
  const auto& tensor = input.type().tensor_type();
  if (tensor.elem_type() != onnx::TensorProto::FLOAT) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", Quoted(input.name()), " has elements of type ",
                     tensor.elem_type(), ", expected FLOAT (1)"));
  }
  const onnx::TensorShapeProto& shape = tensor.shape();
  // 0 stands for what is not a number.
  std::vector<int64_t> sizes;
  for (const auto& dimension : shape.dim()) {
    sizes.push_back(dimension.has_dim_value() ? dimension.dim_value() : 0);
  }
  constexpr int64_t kLargest = 46340;  // its square is below 2^31
  Images images;
  images.channels_last = sizes.size() == 4 && sizes[1] != 1 && sizes[3] == 1;
  const size_t height = images.channels_last ? 1 : 2;
  const size_t channels = images.channels_last ? 3 : 1;
  if (sizes.size() != 4 || sizes[channels] != 1 || sizes[height] < 1 ||
      sizes[height] > kLargest || sizes[height] != sizes[height + 1]) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input ", Quoted(input.name()), " has shape ", Text(shape),
        ", expected [N,1,H,H] or [N,H,H,1]: square images of one channel, of "
        "a fixed size of at most ",
        kLargest));
  }
  images.batch = sizes[0] > 0 ? sizes[0] : kAnyBatch;
  images.shape = {1, sizes[height]};
  return images;
}

absl::StatusOr<Images> Reshaped(const Images& images,
                                const std::vector<int64_t>& target,
                                bool zero_is_zero) {
  const std::vector<int64_t> before = images.Dimensions();
  const int64_t values = images.shape.values();
  const auto refused = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("its input has shape ", images.ToString(),
                     ", and it makes ", Text(target), ", expected [N,", values,
                     "], [N,-1] or [-1,", values, "]"));
  };
  std::vector<int64_t> after = target;
  if (!zero_is_zero) {
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
      if (after[i] == 0) after[i] = before[i];
    }
  }
  // At most one dimension is left open. Where it is the first, the others must
  // have all values of an image; otherwise the first must be the batch.
  if (after.size() < 2) return refused();
  const auto open = std::find(after.begin() + 1, after.end(), -1);
  if (open == after.end()) {
    if (after[0] == -1) after[0] = images.batch;
  } else {
    int64_t others = 1;
    for (size_t i = 1; i < after.size(); ++i) {
      if (after[i] == -1) continue;
      if (after[i] < 1 || __builtin_mul_overflow(others, after[i], &others)) {
        return refused();
      }
    }
    if (values % others != 0) return refused();
    *open = values / others;
  }
  if (after[0] != images.batch) return refused();
  Images reshaped = images;
  reshaped.flat = true;
  if (after == reshaped.Dimensions()) return reshaped;
  if (images.flat) return refused();
  if (after == before) return images;
  // With one channel the two orders of axes are the same.
  reshaped = images;
  reshaped.channels_last = !images.channels_last;
  if (images.shape.channels == 1 && after == reshaped.Dimensions()) {
    return reshaped;
  }
  return refused();
}

}  // namespace convlab
