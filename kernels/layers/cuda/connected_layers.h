// What follows the product of a fully connected layer in the same kernels. This
// header is small because nvcc parses it once per architecture.
#ifndef KERNELS_LAYERS_CUDA_CONNECTED_LAYERS_H_
#define KERNELS_LAYERS_CUDA_CONNECTED_LAYERS_H_

#include "common/network/layer.h"

namespace convlab::cuda {

// A fully connected layer with few weights, which are [outputs, inputs].
struct ConnectedLayer {
  const float* weight = nullptr;
  const float* bias = nullptr;  // null: none
  int outputs = 0;
  Activation activation = Activation::kNone;  // after the bias
};

// The bias and the activation of a fully connected layer, and layers that
// follow it. All pointers are to device memory.
struct ConnectedLayers {
  static constexpr int kMost = 3;
  // The most outputs of the first layer, and of the others, where others follow
  // it, and the most weights of one of those.
  static constexpr int kMostOutputs = 1024, kMostWeights = 1 << 16;

  const float* bias = nullptr;  // null: none
  Activation activation = Activation::kNone;
  int count = 0;  // of `layers`
  ConnectedLayer layers[kMost];
};

}  // namespace convlab::cuda

#endif  // KERNELS_LAYERS_CUDA_CONNECTED_LAYERS_H_
