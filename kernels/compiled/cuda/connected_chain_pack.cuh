// Packing weights for connected_chain_stream.cuh.
#ifndef KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_PACK_CUH_
#define KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_PACK_CUH_

#include <cstdint>

#include "kernels/layers/cuda/matrix_plan.h"

namespace convlab::cuda {

// A thread copies a word of the high halves. `count`: of them.
__global__ void KeepHighHalvesKernel(const uint32_t* words, int64_t count,
                                     uint32_t* high, uint32_t* lost) {
  constexpr int kHighWords = kTileWords / 2;
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const uint32_t* const from =
      words + i / kHighWords * kTileWords + i % kHighWords;
  high[i] = from[0];
  const uint32_t low = from[kHighWords];
  if (low != 0) atomicOr(lost, low);
}

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_PACK_CUH_
