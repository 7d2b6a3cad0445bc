// What the two kernels of a network's front for images of floats share;
// float_front.cu tells the idea.
#ifndef KERNELS_COMPILED_CUDA_FLOAT_FRONT_CUH_
#define KERNELS_COMPILED_CUDA_FLOAT_FRONT_CUH_

#include <cstdint>

#include "kernels/compiled/cuda/float_front.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/cuda/activation.cuh"

namespace convlab::cuda {

struct FloatFrontSizes {
  int64_t images;
  int size, pooled, filters;
  int block_images;
  uint32_t area_magic, pooled_magic, pairs_magic;  // for Divide
};

// Filters beyond the last are zeros.
template <int kSize>
struct FloatFrontParameters {
  float weights[FloatFront::kMostFilters][kSize * kSize];
  float bias[FloatFront::kMostFilters];
};

#if __CUDA_ARCH__ >= 800

// The sums of a window's four outputs: [filter][row and column].
template <int kSize>
__device__ __forceinline__ void ConvolveWindow(
    const float* from, int size, const FloatFrontParameters<kSize>& parameters,
    float (&sums)[FloatFront::kMostFilters][4]) {
#pragma unroll
  for (int r = 0; r < kSize + 1; ++r) {
    float row[kSize + 1];
#pragma unroll
    for (int i = 0; i < kSize + 1; i += 2) {
      const float2 v = *reinterpret_cast<const float2*>(from + r * size + i);
      row[i] = v.x;
      row[i + 1] = v.y;
    }
#pragma unroll
    for (int f = 0; f < FloatFront::kMostFilters; ++f) {
#pragma unroll
      for (int k = 0; k < kSize; ++k) {
#pragma unroll
        for (int dy = 0; dy < 2; ++dy) {
          if (r - dy < 0 || r - dy >= kSize) continue;
          const float weight = parameters.weights[f][(r - dy) * kSize + k];
#pragma unroll
          for (int dx = 0; dx < 2; ++dx) {
            float& sum = sums[f][2 * dy + dx];
            sum = fmaf(weight, row[k + dx], sum);
          }
        }
      }
    }
  }
}

// A window's results for all filters: `from` is its first pixel, `to` its place
// in the first filter's plane of `area` results.
template <int kSize, Activation kActivation>
__device__ __forceinline__ void FinishWindow(
    const float* from, const FloatFrontSizes& sizes,
    const FloatFrontParameters<kSize>& parameters, int area, float* to) {
  float sums[FloatFront::kMostFilters][4] = {};
  ConvolveWindow(from, sizes.size, parameters, sums);
#pragma unroll
  for (int f = 0; f < FloatFront::kMostFilters; ++f) {
    if (f >= sizes.filters) break;
    const float most = MaxOrNan(MaxOrNan(sums[f][0], sums[f][1]),
                                MaxOrNan(sums[f][2], sums[f][3]));
    to[f * area] = Apply<kActivation>(most + parameters.bias[f]);
  }
}

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_FLOAT_FRONT_CUH_
