// What few_images' kernels do with an item (item.h): multiply it and store it.
#ifndef KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_ITEM_CUH_
#define KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_ITEM_CUH_

#include "kernels/convolution/cuda/few_images/item.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/cuda/activation.cuh"

namespace convlab::cuda {

// A thread's sums: of its rows, filters and columns.
template <int kRows>
using FewSums = float[kRows][kFewFilters][kFewColumns];

template <int kRows>
__device__ __forceinline__ void Clear(FewSums<kRows>& sums) {
#pragma unroll
  for (int i = 0; i < kRows * kFewFilters * kFewColumns; ++i) {
    (&sums[0][0][0])[i] = 0;
  }
}

// Adds the products of one filter row. `in` is the first input of the thread's
// first row, and its rows are `row_stride` floats apart; `filters` holds the
// row's taps, each for four filters. kK is 0 where K is not known in advance.
template <int kK, int kRows>
__device__ __forceinline__ void MultiplyRow(const float* in, int row_stride,
                                            const float4* filters, int K,
                                            FewSums<kRows>& sums) {
  const int taps = kK > 0 ? kK : K;
  float window[kRows][8];
  const auto load = [&](int at, int column) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 v =
          *reinterpret_cast<const float4*>(in + r * row_stride + column);
      window[r][at] = v.x, window[r][at + 1] = v.y;
      window[r][at + 2] = v.z, window[r][at + 3] = v.w;
    }
  };
  load(0, 0);
#pragma unroll(kK > 0 ? kK : 1)
  for (int q = 0; q < taps; q += 4) {
    load(4, q + 4);
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      if (q + t >= taps) break;
      const float4 four = filters[q + t];
      const float tap[kFewFilters] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int m = 0; m < kFewFilters; ++m) {
#pragma unroll
          for (int j = 0; j < kFewColumns; ++j) {
            sums[r][m][j] += window[r][t + j] * tap[m];
          }
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int j = 0; j < 4; ++j) window[r][j] = window[r][j + 4];
    }
  }
}

// Applies an epilogue that does not pool. The sums' filters are the m-th and
// the next, of which so many are left.
template <int kRows>
__device__ __forceinline__ void FinishSums(const Epilogue& epilogue, int m,
                                           int filters_left,
                                           FewSums<kRows>& sums) {
  constexpr int kAll = kRows * kFewFilters * kFewColumns;
  float* const all = &sums[0][0][0];
  if (epilogue.bias != nullptr) {
#pragma unroll
    for (int f = 0; f < kFewFilters; ++f) {
      const float bias = f < filters_left ? epilogue.bias[m + f] : 0;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int j = 0; j < kFewColumns; ++j) sums[r][f][j] += bias;
      }
    }
  }
  WithActivation(epilogue.activation, [&](auto activation) {
#pragma unroll
    for (int i = 0; i < kAll; ++i) {
      all[i] = Apply<decltype(activation)::value>(all[i]);
    }
  });
}

// Stores those of a thread's sums that lie in the output, by vectors of type
// Vector. `to` is the place of the first one, of whose dimensions so many are
// left.
template <typename Vector, int kRows, typename Plan>
__device__ __forceinline__ void StoreSumsAs(const Plan& plan,
                                            const FewSums<kRows>& sums,
                                            int filters_left, int rows_left,
                                            int columns_left, float* to) {
  constexpr int kFloats = sizeof(Vector) / sizeof(float);
#pragma unroll
  for (int m = 0; m < kFewFilters; ++m) {
    if (m >= filters_left) return;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r * plan.groups_y >= rows_left) continue;
      float* const row = to + r * plan.groups_y * plan.W_out;
#pragma unroll
      for (int j = 0; j < kFewColumns; j += kFloats) {
        if (j >= columns_left) continue;
        Vector vector;
#pragma unroll
        for (int i = 0; i < kFloats; ++i) {
          reinterpret_cast<float*>(&vector)[i] = sums[r][m][j + i];
        }
        *reinterpret_cast<Vector*>(row + j) = vector;
      }
    }
    to += plan.H_out * plan.W_out;
  }
}

// The same by vectors of plan.store_floats floats.
template <int kRows, typename Plan>
__device__ __forceinline__ void StoreSums(const Plan& plan,
                                          const FewSums<kRows>& sums,
                                          int filters_left, int rows_left,
                                          int columns_left, float* to) {
  if (plan.store_floats == 4) {
    StoreSumsAs<float4, kRows>(plan, sums, filters_left, rows_left,
                               columns_left, to);
  } else if (plan.store_floats == 2) {
    StoreSumsAs<float2, kRows>(plan, sums, filters_left, rows_left,
                               columns_left, to);
  } else {
    StoreSumsAs<float, kRows>(plan, sums, filters_left, rows_left, columns_left,
                              to);
  }
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_ITEM_CUH_
