// The parameters of a network's layers, and their names in files:
//
//   name in our own files   shape               name in MXNet's files
//   conv1.weight            [M, C, K, K]        arg:new0_weight, or
//                                               arg:convolution0_weight
//   conv1.bias              [M]                 arg:new0_bias, or
//                                               arg:convolution0_bias
//   fc1.weight              [outputs, inputs]   arg:fullyconnected0_weight
//   fc1.bias                [outputs]           arg:fullyconnected0_bias
//
// Convolutions and fully connected layers are each counted in their order, from
// 1 and in MXNet's files from 0. Layers without a bias have no bias tensor.
#ifndef COMMON_WEIGHTS_PARAMETERS_H_
#define COMMON_WEIGHTS_PARAMETERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/network/network.h"

namespace convlab {

struct LayerParameters {
  size_t layer;                          // index in the network's layers
  std::string name;                      // "conv1", "fc2"
  std::vector<std::string> other_names;  // "arg:new0", "arg:convolution0"
  std::vector<int64_t> weight_shape;
  bool has_bias;

  // The bias is one number for each filter or output.
  std::vector<int64_t> bias_shape() const { return {weight_shape[0]}; }
};

// One for each layer that has parameters, in their order.
std::vector<LayerParameters> ParametersOf(const Network& network);

}  // namespace convlab

#endif  // COMMON_WEIGHTS_PARAMETERS_H_
