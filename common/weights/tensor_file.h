// The contents of a weight file of any format: named tensors.
#ifndef COMMON_WEIGHTS_TENSOR_FILE_H_
#define COMMON_WEIGHTS_TENSOR_FILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

// How a tensor's values are stored in its file.
enum class DataType { kFloat32, kFloat16 };

struct Tensor {
  std::string name;
  DataType type = DataType::kFloat32;
  std::vector<int64_t> shape;  // empty for a scalar
  std::vector<float> values;   // row-major; kFloat16 expanded
};

struct TensorFile {
  std::vector<Tensor> tensors;  // in the file's order
  std::map<std::string, std::string> metadata;
};

// The number of elements of `shape`; InvalidArgument if a dimension is negative
// or the product overflows.
absl::StatusOr<int64_t> ElementCount(const std::vector<int64_t>& shape);

// Formats `shape` for messages: "[12,1,7,7]".
std::string ShapeString(const std::vector<int64_t>& shape);

// Formats `name` for messages: in quotes, on one line, truncated if it is long.
std::string Quoted(absl::string_view name);

}  // namespace convlab

#endif  // COMMON_WEIGHTS_TENSOR_FILE_H_
