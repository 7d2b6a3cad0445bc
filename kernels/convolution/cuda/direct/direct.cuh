// What the direct kernels share on the device (plan.h has the host's side): the
// place of a thread and its stores.
#ifndef KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_CUH_
#define KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/direct/plan.h"

namespace convlab::cuda {

// A thread's place in the grid, the same for all images that it computes.
struct DirectThread {
  int x, y, m;         // in the block
  int tile_h, tile_w;  // the block's first output position
  int filter;          // the thread's first
  int64_t b, b_step;   // its first image, and how far it is to the next
  // How much of the output lies at and behind the thread's first element.
  int filters_left, rows_left, columns_left;

  __device__ DirectThread(const DirectPlan& plan, const DirectTile& tile) {
    x = threadIdx.x % plan.threads_x;
    y = threadIdx.x / plan.threads_x % plan.threads_y;
    m = threadIdx.x / (plan.threads_x * plan.threads_y);
    // The last warp's threads beyond the plan only help to load.
    const bool computes = m < plan.threads_m;
    if (!computes) m = 0;
    const int64_t place = blockIdx.x % plan.places();
    b = blockIdx.x / plan.places();
    b_step = gridDim.x / plan.places();
    const int tile_place = place / plan.filter_blocks;
    tile_h = tile_place / plan.tiles_x * plan.threads_y * tile.rows;
    tile_w = tile_place % plan.tiles_x * plan.threads_x * tile.columns;
    filter = (place % plan.filter_blocks * plan.threads_m + m) * tile.filters;
    filters_left = computes ? plan.M - filter : 0;
    rows_left = plan.H_out - tile_h - y;
    columns_left = plan.W_out - tile_w - x * tile.columns;
  }

  // The first element of y that the thread computes for image b.
  __device__ float* Output(const DirectPlan& plan, const DirectTile& tile,
                           float* y_tensor) const {
    return y_tensor +
           ((b * plan.M + filter) * plan.H_out + tile_h + y) * plan.W_out +
           tile_w + x * tile.columns;
  }
};

template <int kFloats>
struct FloatVector;
template <>
struct FloatVector<1> {
  using Type = float;
};
template <>
struct FloatVector<2> {
  using Type = float2;
};
template <>
struct FloatVector<4> {
  using Type = float4;
};

template <int kFloats, int kFilters, int kRows, int kColumns>
__device__ __forceinline__ void StoreVectors(
    const DirectPlan& plan, const DirectThread& thread, float* out,
    const float (&sums)[kFilters][kRows][kColumns]) {
  using Vector = typename FloatVector<kFloats>::Type;
#pragma unroll
  for (int m = 0; m < kFilters; ++m) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (m >= thread.filters_left || r * plan.threads_y >= thread.rows_left) {
        continue;
      }
      float* const row = out + int64_t{r} * plan.threads_y * plan.W_out;
#pragma unroll
      for (int i = 0; i < kColumns; i += kFloats) {
        if (i < thread.columns_left) {
          Vector vector;
          float* const floats = reinterpret_cast<float*>(&vector);
#pragma unroll
          for (int j = 0; j < kFloats; ++j) floats[j] = sums[m][r][i + j];
          *reinterpret_cast<Vector*>(row + i) = vector;
        }
      }
    }
    out += int64_t{plan.H_out} * plan.W_out;
  }
}

// Stores those of a thread's sums that are inside the output, in the vectors
// that the alignment of y's rows allows; `out` is the thread's first element.
template <int kFilters, int kRows, int kColumns>
__device__ __forceinline__ void StoreTile(
    const DirectPlan& plan, const DirectThread& thread, float* out,
    const float (&sums)[kFilters][kRows][kColumns]) {
  if constexpr (kColumns % 4 == 0) {
    if (plan.store_floats == 4) {
      StoreVectors<4>(plan, thread, out, sums);
      return;
    }
  }
  if constexpr (kColumns % 2 == 0) {
    if (plan.store_floats >= 2) {
      StoreVectors<2>(plan, thread, out, sums);
      return;
    }
  }
  StoreVectors<1>(plan, thread, out, sums);
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_CUH_
