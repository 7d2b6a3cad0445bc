// What a file of weights holds, whatever its format: named tensors.
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

// How many elements `shape` has; InvalidArgument where a dimension is negative
// or the product does not fit.
absl::StatusOr<int64_t> ElementCount(const std::vector<int64_t>& shape);

// `shape` for messages: "[12,1,7,7]".
std::string ShapeString(const std::vector<int64_t>& shape);

// `name` for messages: in quotes, on one line whatever bytes it holds, cut if
// it is long.
std::string Quoted(absl::string_view name);

}  // namespace convlab

#endif  // COMMON_WEIGHTS_TENSOR_FILE_H_
