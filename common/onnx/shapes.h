// The shapes of images between the nodes of an ONNX graph.
#ifndef COMMON_ONNX_SHAPES_H_
#define COMMON_ONNX_SHAPES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/network/network.h"
#include "onnx/onnx.pb.h"

namespace convlab {

// What a node reads or writes: for each image the tensor [C, H, H] in one of
// two orders of its axes, or the same as a vector.
struct Images {
  int64_t batch;  // or kAnyBatch
  TensorShape shape;
  bool channels_last = false;
  bool flat = false;

  std::vector<int64_t> Dimensions() const;
  // "[N,16,5,5]"
  std::string ToString() const;
};

// The graph's input, float32 with one channel.
absl::StatusOr<Images> InputImages(const onnx::ValueInfoProto& input);

// Behind a Reshape to `target`. `zero_is_zero`: a 0 does not stand for the
// dimension as it is.
absl::StatusOr<Images> Reshaped(const Images& images,
                                const std::vector<int64_t>& target,
                                bool zero_is_zero);

}  // namespace convlab

#endif  // COMMON_ONNX_SHAPES_H_
