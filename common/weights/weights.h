// A network's trained weights, from a file of any format that users have:
//
//   name in our own files   shape               name in MXNet's files
//   conv1.weight            [M, C, K, K]        arg:new0_weight, or
//                                               arg:convolution0_weight
//   conv2.weight            likewise; absent where there is one convolution
//   fc1.weight              [hidden, inputs]    arg:fullyconnected0_weight
//   fc1.bias                [hidden]            arg:fullyconnected0_bias
//   fc2.weight              [10, hidden]        arg:fullyconnected1_weight
//   fc2.bias                [10]                arg:fullyconnected1_bias
#ifndef COMMON_WEIGHTS_WEIGHTS_H_
#define COMMON_WEIGHTS_WEIGHTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/network/network.h"

namespace convlab {

struct FullyConnectedWeights {
  int64_t inputs = 0;
  int64_t outputs = 0;
  std::vector<float> weight;  // [outputs, inputs]
  std::vector<float> bias;    // [outputs]
};

struct NetworkWeights {
  std::vector<std::vector<float>> convolutions;  // per stage, [M, C, K, K]
  FullyConnectedWeights hidden;
  FullyConnectedWeights output;
  std::map<std::string, std::string> metadata;  // of a safetensors file
};

// Reads the file `path`, safetensors, MXNet .params or mini-dnn .bin, told by
// its content. Its tensors must be exactly those of `network`, in any order,
// and finite, and its metadata may not name another network. The error names
// the file and what is wrong in it: NotFound or PermissionDenied where it
// cannot be read, InvalidArgument otherwise.
absl::StatusOr<NetworkWeights> LoadWeights(const std::string& path,
                                           const Network& network);

}  // namespace convlab

#endif  // COMMON_WEIGHTS_WEIGHTS_H_
