#include "common/weights/mxnet_params.h"

#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "common/weights/byte_reader.h"

namespace convlab {
namespace {

// An array begins with one of these, or, in the oldest files, with the number
// of its dimensions.
constexpr uint32_t kArrayWithStorageType = 0xF993FAC9;
constexpr uint32_t kArray = 0xF993FAC8;

constexpr uint32_t kMostDimensions = 32;

absl::StatusOr<std::vector<int64_t>> ReadShape(ByteReader& reader) {
  const size_t offset = reader.offset();
  ASSIGN_OR_RETURN(const uint32_t magic,
                   reader.Integer<uint32_t>("its header"));
  const bool has_magic = magic == kArrayWithStorageType || magic == kArray;
  if (magic == kArrayWithStorageType) {
    ASSIGN_OR_RETURN(const int32_t storage,
                     reader.Integer<int32_t>("its storage type"));
    if (storage != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "storage type ", storage, ", expected 0 (a dense array)"));
    }
  }
  uint32_t rank = magic;
  if (has_magic) {
    ASSIGN_OR_RETURN(rank, reader.Integer<uint32_t>("its dimension count"));
  }
  if (rank == 0 || rank > kMostDimensions) {
    return absl::InvalidArgumentError(
        has_magic || rank == 0
            ? absl::StrCat(rank, " dimensions, expected 1 to ", kMostDimensions)
            : absl::StrFormat("it begins with 0x%08X at byte %d, expected "
                              "0x%08X, 0x%08X or a dimension count",
                              magic, offset, kArrayWithStorageType, kArray));
  }
  std::vector<int64_t> shape;
  for (uint32_t i = 0; i < rank; ++i) {
    int64_t dimension;
    if (has_magic) {
      ASSIGN_OR_RETURN(dimension, reader.Integer<int64_t>("its shape"));
    } else {
      ASSIGN_OR_RETURN(dimension, reader.Integer<uint32_t>("its shape"));
    }
    shape.push_back(dimension);
  }
  return shape;
}

absl::StatusOr<Tensor> ReadArray(ByteReader& reader) {
  Tensor tensor;
  ASSIGN_OR_RETURN(tensor.shape, ReadShape(reader));
  ASSIGN_OR_RETURN(const int64_t count, ElementCount(tensor.shape));
  // The device that it was saved from.
  RETURN_IF_ERROR(reader.Bytes(8, "its device").status());
  ASSIGN_OR_RETURN(const int32_t dtype, reader.Integer<int32_t>("its dtype"));
  if (dtype != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype ", dtype, ", expected 0 (float32)"));
  }
  ASSIGN_OR_RETURN(
      tensor.values,
      reader.Floats(count,
                    absl::StrCat("values of ", ShapeString(tensor.shape))));
  return tensor;
}

absl::Status ReadNames(ByteReader& reader, std::vector<Tensor>& tensors) {
  ASSIGN_OR_RETURN(const uint64_t count,
                   reader.Integer<uint64_t>("the name count"));
  if (count != tensors.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensors.size(), " arrays, but ", count, " names"));
  }
  std::set<std::string> names;
  for (Tensor& tensor : tensors) {
    ASSIGN_OR_RETURN(const uint64_t length,
                     reader.Integer<uint64_t>("a name's length"));
    ASSIGN_OR_RETURN(const absl::string_view name,
                     reader.Bytes(length, "a name's letters"));
    tensor.name = std::string(name);
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two arrays are named ", Quoted(name)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorFile> ParseMxnetParams(absl::string_view content) {
  ByteReader reader(content);
  ASSIGN_OR_RETURN(const uint64_t magic,
                   reader.Integer<uint64_t>("the magic number"));
  if (magic != kMxnetMagic) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "magic number 0x%x, expected 0x%x", magic, kMxnetMagic));
  }
  RETURN_IF_ERROR(reader.Bytes(8, "the reserved bytes").status());
  ASSIGN_OR_RETURN(const uint64_t count,
                   reader.Integer<uint64_t>("the array count"));
  TensorFile file;
  // A false count ends at the end of the file.
  for (uint64_t i = 0; i < count; ++i) {
    absl::StatusOr<Tensor> tensor = ReadArray(reader);
    RETURN_IF_ERROR(
        Annotate(tensor.status(), absl::StrCat("array ", i, " of ", count)));
    file.tensors.push_back(*std::move(tensor));
  }
  RETURN_IF_ERROR(ReadNames(reader, file.tensors));
  RETURN_IF_ERROR(reader.ExpectEnd());
  return file;
}

}  // namespace convlab
