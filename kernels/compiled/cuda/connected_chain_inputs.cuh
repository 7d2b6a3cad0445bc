// A product's inputs of one image, from floats to halves in shared memory, for
// the kernel of connected_chain_stream.cuh.
#ifndef KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_INPUTS_CUH_
#define KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_INPUTS_CUH_

#include <cstdint>

#include "kernels/cuda/split.cuh"
#include "kernels/layers/cuda/matrix_plan.h"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// Loads 16 inputs, of which `left` exist: the others are zeros.
__device__ __forceinline__ void LoadInputs(const float* from, int left,
                                           float (&v)[kMatrixStep]) {
#pragma unroll
  for (int i = 0; i < kMatrixStep; i += 4) {
    float4 four = make_float4(0, 0, 0, 0);
    if (left > i) four = reinterpret_cast<const float4*>(from)[i / 4];
    v[i] = four.x;
    v[i + 1] = left > i + 1 ? four.y : 0;
    v[i + 2] = left > i + 2 ? four.z : 0;
    v[i + 3] = left > i + 3 ? four.w : 0;
  }
}

// High halves of the first and last 8 inputs, then low ones.
__device__ __forceinline__ void StoreHalves(const float (&v)[kMatrixStep],
                                            float scale, char* to) {
#pragma unroll
  for (int i = 0; i < kMatrixStep; i += 8) {
    SplitPair pairs[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      pairs[j] = SplitHalves(v[i + 2 * j] * scale, v[i + 2 * j + 1] * scale);
    }
    auto* const own = reinterpret_cast<uint4*>(to + i / 8 * 128);
    own[0] =
        make_uint4(pairs[0].high, pairs[1].high, pairs[2].high, pairs[3].high);
    own[kTileWords * 4 / 2 / 16] =
        make_uint4(pairs[0].low, pairs[1].low, pairs[2].low, pairs[3].low);
  }
}

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_INPUTS_CUH_
