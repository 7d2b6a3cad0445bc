// mini-dnn's .bin files, in the form that the course has used since fa20: i32
// layer count, then per layer i32 float count and that many float32, all
// little-endian. Layers without parameters have a count of 0.
#ifndef COMMON_WEIGHTS_MINI_DNN_H_
#define COMMON_WEIGHTS_MINI_DNN_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/network/network.h"
#include "common/weights/tensor_file.h"

namespace convlab {

// Parses the bytes of a file into tensors that are named as in our own files:
// conv1.weight, fc1.weight, fc1.bias and so on. The file has neither names nor
// shapes, so its layers must be those of `network`, in order. It stores a bias
// for every layer; biases of layers that have none in the network are dropped,
// as the course's convolutions do not add theirs. InvalidArgument for any other
// content.
absl::StatusOr<TensorFile> ParseMiniDnn(absl::string_view content,
                                        const Network& network);

}  // namespace convlab

#endif  // COMMON_WEIGHTS_MINI_DNN_H_
