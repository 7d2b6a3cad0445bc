// Packing the filters of a convolution with max pooling (convolve_pool_plan.h).
#ifndef KERNELS_COMPILED_CUDA_CONVOLVE_POOL_PACK_CUH_
#define KERNELS_COMPILED_CUDA_CONVOLVE_POOL_PACK_CUH_

#include <cstdint>

#include "kernels/compiled/cuda/convolve_pool.cuh"

namespace convlab::cuda {

// A block packs one filter, those beyond M as zeros. The bias may be null.
__global__ void PackConvolvePoolKernel(
    const float* filters, const float* bias,
    const __grid_constant__ PackedConvolvePool packed,
    const __grid_constant__ ConvolvePoolShape shape) {
#if __CUDA_ARCH__ >= 800
  const ConvolvePoolInstance& instance = shape.instance;
  const int C = shape.problem.channels, K = shape.problem.kernel_size;
  const int m = blockIdx.x;
  const bool exists = m < shape.problem.filters;
  const int weights = exists ? shape.weights() : 0;
  const float* const own = filters + static_cast<int64_t>(m) * weights;
  const FilterScale scale = ScaleFilter(own, weights, packed.scaled + m);
  for (int i = threadIdx.x; i < weights; i += blockDim.x) {
    packed.filters[static_cast<int64_t>(m) * weights + i] = own[i];
  }
  if (exists && threadIdx.x == 0) {
    packed.bias[m] = bias == nullptr ? 0 : bias[m];
  }
  const auto weight = [&](int c, int p, int q) {
    const bool inside = exists && c < C && p >= 0 && p < K && q >= 0 && q < K;
    return inside ? scale(own[(c * K + p) * K + q]) : 0;
  };
  const int group = m / instance.filters(), in_group = m % instance.filters();
  for (int i = threadIdx.x; i < instance.steps() * 4; i += blockDim.x) {
    const int t = i % 4, step = i / 4;
    float v[2][2];  // of two words
    for (int half = 0; half < 2; ++half) {
      for (int j = 0; j < 2; ++j) {
        const int word = step % instance.row_steps * 8 + 4 * half + t;
        v[half][j] = weight(word % shape.pairs * 2 + j,
                            step / instance.row_steps, word / shape.pairs);
      }
    }
    uint4 words;
    Split(v[0][0], v[0][1], words.x, words.z);
    Split(v[1][0], v[1][1], words.y, words.w);
    const int step_tile = (group * instance.steps() + step) * instance.tiles;
    packed.vectors[(step_tile + in_group / 8) * 32 + in_group % 8 * 4 + t] =
        words;
  }
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONVOLVE_POOL_PACK_CUH_
