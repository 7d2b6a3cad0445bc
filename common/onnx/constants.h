// The constants of an ONNX graph: its initializers, and what its nodes compute
// without an image.
#ifndef COMMON_ONNX_CONSTANTS_H_
#define COMMON_ONNX_CONSTANTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "onnx/onnx.pb.h"

namespace convlab {

// The number of images, which no network may depend on, where a shape contains
// it.
constexpr int64_t kAnyBatch = INT64_MIN;

// A tensor of float32 or of integers.
struct Constant {
  std::vector<int64_t> shape;
  std::vector<float> floats;
  std::vector<int64_t> integers;  // instead of floats
  bool is_float = true;
};

class Constants {
 public:
  // `graph` must outlive the object.
  explicit Constants(const onnx::GraphProto& graph);

  bool Has(const std::string& name) const {
    return stored_.count(name) > 0 || computed_.count(name) > 0;
  }

  // The values of the name; the error names it.
  absl::StatusOr<Constant> Get(const std::string& name);
  // The same, finite float32 of a tensor with `rank` dimensions; any number of
  // them if that is negative.
  absl::StatusOr<Constant> Weights(const std::string& name, int rank);

  // Adds what the node writes. All its inputs are constants, or it is a Shape
  // of something of `shape`.
  absl::Status Compute(const onnx::NodeProto& node,
                       const std::vector<int64_t>& shape);

 private:
  absl::StatusOr<Constant> Result(const onnx::NodeProto& node,
                                  const std::vector<int64_t>& shape);

  std::map<std::string, const onnx::TensorProto*> stored_;
  std::map<std::string, Constant> computed_;
  // How many values may still be copied. A small file may ask for any number:
  // it can join a constant with itself again and again.
  int64_t left_;
};

}  // namespace convlab

#endif  // COMMON_ONNX_CONSTANTS_H_
