// How a block of FewImagesTileKernel (tile_kernel.cuh) brings its inputs and
// filters to shared memory: asynchronously, all at once.
#ifndef KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_TILE_COPIES_CUH_
#define KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_TILE_COPIES_CUH_

#include <cuda_pipeline_primitives.h>

#include <cstdint>

#include "kernels/convolution/cuda/few_images/inset_copies.cuh"
#include "kernels/convolution/cuda/few_images/item.h"
#include "kernels/convolution/cuda/few_images/tile_plan.h"
#include "kernels/convolution/cuda/lib/division.h"

namespace convlab::cuda {

// A block's first output row, column and filter, the place of that output, and
// the block's parts of shared memory.
struct FewTile {
  int h0, w0, m0;
  float* to;
  float* filters;
  float* inputs;
  float4* stage;
};

__device__ __forceinline__ FewTile TileOfBlock(const TilePlan& plan, float* y,
                                               float4* shared) {
  FewTile tile;
  tile.filters = reinterpret_cast<float*>(shared);
  tile.inputs = tile.filters + plan.filter_floats;
  tile.stage = shared + (plan.filter_floats + plan.input_floats) / 4;
  const int tile_y = plan.tiles_x == 1 ? blockIdx.y : blockIdx.y / plan.tiles_x;
  tile.h0 = tile_y * plan.tile_rows;
  tile.w0 = (blockIdx.y - tile_y * plan.tiles_x) * plan.tile_columns;
  tile.m0 = blockIdx.z * plan.block_filters;
  const int area = plan.H_out * plan.W_out;
  tile.to = y + (int64_t{blockIdx.x} * plan.M + tile.m0) * area +
            int64_t{tile.h0} * plan.W_out + tile.w0;
  return tile;
}

// Starts the copy of the block's filters, of `taps` taps each from `from` on,
// to [group of four][tap][filter].
__device__ __forceinline__ void CopyFilters(const TilePlan& plan,
                                            const float* from, int filters_left,
                                            int taps, float* to) {
  // Eight taps of each filter are a sector, and four filters side by side
  // whole lines of shared memory.
  const int thread = threadIdx.x;
  const int lane_filter = thread % kFewFilters;
  const int first = thread / kFewFilters;
  const int step = blockDim.x / kFewFilters;
  const int filter_taps = plan.C * plan.K * plan.K;
  from += int64_t{lane_filter} * filter_taps;
  to += lane_filter;
  const int groups = plan.groups_m * plan.rounds;
  for (int m = lane_filter; m < groups * kFewFilters; m += kFewFilters) {
    if (m < filters_left) {
#pragma unroll 1
      for (int tap = first; tap < taps; tap += step) {
        __pipeline_memcpy_async(to + tap * kFewFilters, from + tap, 4);
      }
    }
    from += int64_t{kFewFilters} * filter_taps;
    to += taps * kFewFilters;
  }
}

// Starts the copy of a tile's inputs, from its first one on, to rows of `pitch`
// floats, one channel after another, by vectors of kFloats floats.
template <FewScope kScope, int kFloats>
__device__ __forceinline__ void CopyInputsAs(const TilePlan& plan,
                                             const float* from, int channels,
                                             int rows_left, int columns_left,
                                             float* to) {
  const int thread = threadIdx.x;
  const int first = Divide(thread, plan.copy_columns_magic);
  const int column = (thread - first * plan.copy_columns) * kFloats;
  if (first >= plan.copy_rows || column >= columns_left) return;
  const int rows = channels * plan.input_rows;
  const int next_channel = (plan.H - plan.input_rows) * plan.W;
  from += column, to += column;
#pragma unroll 2
  for (int row = first; row < rows; row += plan.copy_rows) {
    const int c = kScope == FewScope::kOneChannel
                      ? 0
                      : Divide(row, plan.input_rows_magic);
    if (row - c * plan.input_rows < rows_left) {
      __pipeline_memcpy_async(to + row * plan.pitch,
                              from + row * plan.W + c * next_channel,
                              4 * kFloats);
    }
  }
}

// The same for an image amid zeros. `from` is its first channel.
template <FewScope kScope>
__device__ __forceinline__ void CopyPaddedInputs(const TilePlan& plan,
                                                 const FewTile& tile,
                                                 const float* from,
                                                 int channels) {
  const auto row_of = [&](int row) {
    const int c = kScope == FewScope::kOneChannel
                      ? 0
                      : Divide(row, plan.input_rows_magic);
    return RowOfInset(plan.inset, c, tile.h0 + row - c * plan.input_rows);
  };
  const int rows = channels * plan.input_rows;
  if (plan.copy_floats == 2) {
    CopyRowsOfInset<2>(plan.inset, rows, plan.copy_columns, tile.w0, plan.pitch,
                       from, tile.inputs, row_of);
  } else {
    CopyRowsOfInset<1>(plan.inset, rows, plan.copy_columns, tile.w0, plan.pitch,
                       from, tile.inputs, row_of);
  }
}

// The inputs of a block's tile, by vectors of plan.copy_floats floats, where
// `image` is the first channel.
template <FewScope kScope>
__device__ __forceinline__ void CopyInputs(const TilePlan& plan,
                                           const FewTile& tile,
                                           const float* image, int channels) {
  if (plan.padded) {
    CopyPaddedInputs<kScope>(plan, tile, image, channels);
    return;
  }
  const float* const from = image + (int64_t{tile.h0} * plan.W + tile.w0);
  const int rows_left = plan.H - tile.h0, columns_left = plan.W - tile.w0;
  if (plan.copy_floats == 4) {
    CopyInputsAs<kScope, 4>(plan, from, channels, rows_left, columns_left,
                            tile.inputs);
  } else if (plan.copy_floats == 2) {
    CopyInputsAs<kScope, 2>(plan, from, channels, rows_left, columns_left,
                            tile.inputs);
  } else {
    CopyInputsAs<kScope, 1>(plan, from, channels, rows_left, columns_left,
                            tile.inputs);
  }
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_TILE_COPIES_CUH_
