// Networks from ONNX files: a sequence of the layers of common/network, with
// its weights, as PyTorch and Keras export it.
//
//   input      one, float32, [N, 1, H, H] or [N, H, H, 1], whatever N; it gets
//              pixels from 0 to 255, so a network that was trained on others
//              must scale them by its first weights
//   layers     Conv (stride 1, no padding, group 1), Relu, Tanh, MaxPool
//              (strided as its window, no padding), Flatten, Reshape to two
//              dimensions, Gemm, MatMul, and Add of a bias
//   weights    initializers and constants in the file, float32
//   nothing    Identity, Dropout, Transpose between the two orders of axes, the
//              arithmetic that computes a Reshape's shape, and Softmax or
//              LogSoftmax behind the last layer, which keep the labels
#ifndef COMMON_ONNX_ONNX_H_
#define COMMON_ONNX_ONNX_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/network/network.h"
#include "common/weights/weights.h"

namespace convlab {

struct OnnxNetwork {
  Network network;  // CheckNetwork and CheckWeights accept both
  NetworkWeights weights;
  std::vector<std::string> notes;  // what was left out, for the user
};

// Reads the file `path`; the network is called as the file, without folder and
// ".onnx". The error names the file and, wherever it can, the node: NotFound or
// PermissionDenied where the file cannot be read, InvalidArgument otherwise.
absl::StatusOr<OnnxNetwork> ReadOnnx(const std::string& path);

// Parses the same from `content`, the bytes of a file. Memory is bounded by a
// few times their number.
absl::StatusOr<OnnxNetwork> ParseOnnx(absl::string_view content,
                                      const std::string& name);

}  // namespace convlab

#endif  // COMMON_ONNX_ONNX_H_
