// Fully connected layers one after another as one kernel, each with its bias
// and activation. All pointers are to device memory.
#ifndef KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_H_
#define KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_H_

#include <cstdint>

#include "common/network/layer.h"
#include "kernels/compiled/cuda/connected_chain_plan.h"
#include "kernels/cuda/error.h"
#include "kernels/layers/cuda/matrix_plan.h"

namespace convlab::cuda {

// The weights are packed as for the product of one layer (matrix_plan.h).
struct ChainLayer {
  MatrixShape shape;
  const float* packed;
  // Their high halves alone, in the same order, if the low ones are all zero;
  // otherwise null.
  const uint32_t* high;
  const float* bias;  // null: none
  Activation activation;
};

struct Chain {
  int count;
  ChainLayer layers[kMostChainLayers];
};

constexpr int kChainThreads = 256;

// Whether a layer may stand in a chain, at its beginning or later.
bool TakesChainLayer(int64_t inputs, int64_t outputs, MatrixShape* shape);
// Whether the current device has the tensor cores for it.
bool RunsChain();

// Copies the high halves of packed weights, shape.words() / 2 words, and sets
// bits of *lost if a low one is not zero, in the default stream.
Error LaunchKeepHighHalves(const MatrixShape& shape, const float* packed,
                           uint32_t* high, uint32_t* lost);

// Queues the layers for `in` [images, inputs of the first] in `stream`; `out`
// is [images, outputs of the last].
Error LaunchChain(const Chain& chain, int64_t images, const float* in,
                  float* out, cudaStream_t stream);

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_H_
