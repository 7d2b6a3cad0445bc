// A block of threads for each tile and each few filters of an image: the kernel
// of TilePlan (tile_plan.h).
//
// The block's life. All its threads start copies of the tile's inputs and of
// the filters to shared memory, work out their places while the copies are on
// their way, and wait for them once. Then each thread computes its items, one
// in each round. Channels that do not fit into shared memory at once come in
// parts, each with its own wait.
//
// Threads stand in columns of items, fastest, then rows, then groups of four
// filters, then slices. A slice computes some of the filter rows of all
// channels; with several slices the sums go to shared memory, where they are
// added. With an epilogue the sums of one slice go there, too, and what is
// stored are the windows of the pooling.
//
// Shared memory holds the filters as [group of four][tap][filter], so that a
// thread loads a tap of four filters by 16 bytes; then the inputs as
// [channel][row][column], rows `pitch` floats apart; then the slices' sums.
#ifndef KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_TILE_KERNEL_CUH_
#define KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_TILE_KERNEL_CUH_

#include <cuda_pipeline_primitives.h>

#include <cstdint>
#include <type_traits>

#include "kernels/convolution/cuda/few_images/item.cuh"
#include "kernels/convolution/cuda/few_images/tile_copies.cuh"
#include "kernels/convolution/cuda/few_images/tile_plan.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/cuda/activation.cuh"

namespace convlab::cuda {

// What a thread works on, in one part of the channels.
struct FewPlace {
  int layer;        // group of filters and slice, counted through
  int row, column;  // in the tile, of its first row and column
  // Its slice: filter rows, from row first_p of a channel on.
  int filter_rows, first_p;
  const float* in;     // the first input
  const float4* taps;  // the first tap of four filters
  int row_stride;      // from one of its rows to the next
  int next_channel;    // from the end of a channel's last filter row on
  int filters_left;    // none for a thread that only copies
  float* to;           // the first output
};

// Where the thread stands, for a part of `channels` channels.
template <FewScope kScope>
__device__ __forceinline__ FewPlace PlaceOfThread(const TilePlan& plan,
                                                  const FewTile& tile, int K,
                                                  int channels) {
  constexpr bool kOneChannel = kScope == FewScope::kOneChannel;
  const int thread = threadIdx.x;
  FewPlace place;
  const int y_and_layer = Divide(thread, plan.groups_x_magic);
  place.column = (thread - y_and_layer * plan.groups_x) * kFewColumns;
  place.layer = Divide(y_and_layer, plan.groups_y_magic);
  place.row = y_and_layer - place.layer * plan.groups_y;
  const int slice = kOneChannel ? 0 : Divide(place.layer, plan.groups_m_magic);
  const int m = (place.layer - slice * plan.groups_m) * kFewFilters;
  const int first_row = kOneChannel ? 0 : slice * plan.slice_rows;
  place.filter_rows = min(plan.slice_rows, channels * K - first_row);
  const int first_channel = first_row / K;
  place.first_p = first_row - first_channel * K;
  place.in = tile.inputs + first_channel * plan.plane() +
             (place.first_p + place.row) * plan.pitch + place.column;
  place.taps = reinterpret_cast<const float4*>(tile.filters) +
               m / kFewFilters * channels * (K * K) + first_row * K;
  place.row_stride = plan.groups_y * plan.pitch;
  place.next_channel = plan.plane() - K * plan.pitch;
  place.filters_left = thread < plan.threads ? plan.M - tile.m0 - m : 0;
  const int area = plan.H_out * plan.W_out;
  place.to = tile.to + m * area + place.row * plan.W_out + place.column;
  return place;
}

// Adds the products of the thread's filter rows in the channels that are there.
template <FewScope kScope, int kK, int kRows>
__device__ __forceinline__ void MultiplySlice(const TilePlan& plan,
                                              const FewPlace& place,
                                              const float4* taps, int K,
                                              FewSums<kRows>& sums) {
  const float* in = place.in;
  const auto multiply_row = [&] {
    MultiplyRow<kK, kRows>(in, place.row_stride, taps, K, sums);
    taps += K, in += plan.pitch;
  };
  if constexpr (kScope == FewScope::kOneChannel) {
#pragma unroll
    for (int p = 0; p < kK; ++p) multiply_row();
  } else {
    for (int p = place.first_p, left = place.filter_rows; left > 0; p = 0) {
      const int end = min(K, p + left);
      left -= end - p;
#pragma unroll 1
      for (; p < end; ++p) multiply_row();
      in += place.next_channel;
    }
  }
}

// Brings a thread's sums to shared memory.
template <int kRows>
__device__ __forceinline__ void StageSums(const TilePlan& plan,
                                          const FewTile& tile,
                                          const FewPlace& place,
                                          const FewSums<kRows>& sums) {
  float4* to =
      tile.stage +
      (place.layer * kFewFilters * plan.tile_rows + place.row) * plan.groups_x +
      place.column / kFewColumns;
#pragma unroll
  for (int f = 0; f < kFewFilters; ++f) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      *to = make_float4(sums[r][f][0], sums[r][f][1], sums[r][f][2],
                        sums[r][f][3]);
      to += plan.groups_y * plan.groups_x;
    }
  }
}

// Adds the sums of all slices, and stores the outputs.
__device__ __forceinline__ void AddSlices(const TilePlan& plan,
                                          const FewTile& tile, int slices) {
  const int area = plan.H_out * plan.W_out;
  const int of_slice =
      plan.groups_m * kFewFilters * plan.tile_rows * plan.tile_columns;
#pragma unroll 1
  for (int i = threadIdx.x; i < of_slice; i += blockDim.x) {
    const float* term = reinterpret_cast<const float*>(tile.stage) + i;
    float sum = 0;
#pragma unroll 8
    for (int s = 0; s < slices; ++s, term += of_slice) sum += *term;
    const int m_and_row = Divide(i, plan.tile_columns_magic);
    const int column = i - m_and_row * plan.tile_columns;
    const int m = Divide(m_and_row, plan.tile_rows_magic);
    const int row = m_and_row - m * plan.tile_rows;
    if (tile.m0 + m < plan.M && tile.h0 + row < plan.H_out &&
        tile.w0 + column < plan.W_out) {
      tile.to[m * area + row * plan.W_out + column] = sum;
    }
  }
}

// The maximum of a window, of sums that each are the sum of `slices` terms,
// of_slice floats apart. kSize is 0 where the window's size is not known in
// advance. Where the window extends beyond the image, the tile's last row or
// column in it counts again.
template <int kSize>
__device__ __forceinline__ float MaxOfWindow(const TilePlan& plan,
                                             const float* stage, int row,
                                             int column, int last_row,
                                             int last_column, int of_slice,
                                             int slices) {
  const int size = kSize > 0 ? kSize : plan.window.size;
  float largest = -INFINITY;
#pragma unroll(kSize > 0 ? kSize : 1)
  for (int p = 0; p < size; ++p) {
    const float* const from =
        stage + min(row + p, last_row) * plan.tile_columns;
#pragma unroll(kSize > 0 ? kSize : 1)
    for (int q = 0; q < size; ++q) {
      const float* term = from + min(column + q, last_column);
      float sum = *term;
#pragma unroll 8
      for (int s = 1; s < slices; ++s) sum += *(term += of_slice);
      largest = MaxOrNan(sum, largest);
    }
  }
  return largest;
}

// Adds the sums of all slices, and stores the windows of the tile with the
// epilogue applied.
__device__ __forceinline__ void PoolSlices(const TilePlan& plan,
                                           const FewTile& tile, int slices,
                                           float* y) {
  const int of_filter = plan.tile_rows * plan.tile_columns;
  const int of_slice = plan.groups_m * kFewFilters * of_filter;
  const int windows =
      plan.groups_m * kFewFilters * plan.window_rows * plan.window_columns;
  const int stride = plan.window.stride;
  const int last_row = plan.H_out - tile.h0 - 1;
  const int last_column = plan.W_out - tile.w0 - 1;
  const int h0 = tile.h0 / stride, w0 = tile.w0 / stride;
#pragma unroll 1
  for (int i = threadIdx.x; i < windows; i += blockDim.x) {
    const int m_and_row = Divide(i, plan.window_columns_magic);
    const int column = i - m_and_row * plan.window_columns;
    const int in_block = Divide(m_and_row, plan.window_rows_magic);
    const int row = m_and_row - in_block * plan.window_rows;
    const int m = tile.m0 + in_block;
    const int h = h0 + row, w = w0 + column;
    if (m >= plan.M || h >= plan.pooled_rows || w >= plan.pooled_columns) {
      continue;
    }
    const float* const stage =
        reinterpret_cast<const float*>(tile.stage) + in_block * of_filter;
    const auto pool = [&](auto size) {
      return MaxOfWindow<decltype(size)::value>(plan, stage, row * stride,
                                                column * stride, last_row,
                                                last_column, of_slice, slices);
    };
    float value = plan.window.size == 2
                      ? pool(std::integral_constant<int, 2>())
                      : pool(std::integral_constant<int, 0>());
    if (plan.epilogue.bias != nullptr) value += plan.epilogue.bias[m];
    y[((int64_t{blockIdx.x} * plan.M + m) * plan.pooled_rows + h) *
          plan.pooled_columns +
      w] = Apply(plan.epilogue.activation, value);
  }
}

// kK is 0 where the filter's size is not known in advance; with kFused the plan
// has an epilogue.
template <FewScope kScope, int kK, int kRows, bool kFused>
__global__ void __launch_bounds__(kFewMostThreads[kRows - 1], 2)
    FewImagesTileKernel(const float* __restrict__ x,
                        const float* __restrict__ k, float* __restrict__ y,
                        const __grid_constant__ TilePlan plan) {
  constexpr bool kOneChannel = kScope == FewScope::kOneChannel;
  extern __shared__ float4 shared[];
  const int K = kK > 0 ? kK : plan.K;
  const int C = kOneChannel ? 1 : plan.C;
  const int slices = kOneChannel ? 1 : plan.slices;
  const FewTile tile = TileOfBlock(plan, y, shared);
  const int area = plan.H_out * plan.W_out;
  // Before it reads x or k, or writes y.
  WaitForKernelBefore();
  LetNextKernelStart();

  FewSums<kRows> sums = {};
  // A loop only where channels come in parts, because it delays the first load.
  constexpr bool kParts = kScope == FewScope::kAnything;
  const int end_channel = kParts ? C : 1;
  const int step = kParts ? plan.channels : 1;
#pragma unroll 1
  for (int c0 = 0; c0 < end_channel; c0 += step) {
    const int channels = kParts ? min(step, C - c0) : C;
    if (c0 > 0) __syncthreads();  // the channels before are no longer read
    CopyInputs<kScope>(plan, tile,
                       x + (int64_t{blockIdx.x} * C + c0) *
                               (plan.inset.height * plan.inset.width),
                       channels);
    CopyFilters(plan, k + (int64_t{tile.m0} * C + c0) * (K * K),
                plan.M - tile.m0, channels * K * K, tile.filters);
    __pipeline_commit();
    FewPlace place = PlaceOfThread<kScope>(plan, tile, K, channels);
    __pipeline_wait_prior(0);
    __syncthreads();

#pragma unroll 1
    for (int round = 0; round < plan.rounds && place.filters_left > 0;
         ++round) {
      MultiplySlice<kScope, kK, kRows>(plan, place, place.taps, K, sums);
      if (c0 + channels < C) break;  // there is one round then
      if (kFused ? plan.stages() : slices > 1) {
        StageSums<kRows>(plan, tile, place, sums);
        break;
      }
      if constexpr (kFused) {
        FinishSums<kRows>(plan.epilogue, plan.M - place.filters_left,
                          place.filters_left, sums);
      }
      StoreSums<kRows>(plan, sums, place.filters_left,
                       plan.H_out - tile.h0 - place.row,
                       plan.W_out - tile.w0 - place.column, place.to);
      Clear<kRows>(sums);
      place.taps += plan.groups_m * channels * (K * K);
      place.filters_left -= plan.groups_m * kFewFilters;
      place.to += int64_t{plan.groups_m} * kFewFilters * area;
    }
  }
  if (kFused ? !plan.stages() : slices == 1) return;
  __syncthreads();
  if constexpr (kFused) {
    PoolSlices(plan, tile, slices, y);
  } else {
    AddSlices(plan, tile, slices);
  }
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_TILE_KERNEL_CUH_
