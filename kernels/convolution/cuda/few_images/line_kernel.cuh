// All items of all images in one line, which blocks of threads share out in
// equal parts: the kernel of LinePlan (line_plan.h), for one channel.
//
// The line has an image's tiles one after another, a tile's groups of four
// filters, and a group's positions. A block copies the inputs of every tile and
// the filters of every group that its part of the line meets, waits once, and
// goes through its items.
//
// Shared memory holds the filters as [group of four][tap][filter], from the
// block's first group on, and the inputs as [tile][row][column], rows `pitch`
// floats apart.
#ifndef KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_LINE_KERNEL_CUH_
#define KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_LINE_KERNEL_CUH_

#include <cuda_pipeline_primitives.h>

#include <cstdint>

#include "kernels/convolution/cuda/few_images/inset_copies.cuh"
#include "kernels/convolution/cuda/few_images/item.cuh"
#include "kernels/convolution/cuda/few_images/line_plan.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"

namespace convlab::cuda {

// A block's part of the line. Items count from the begin of its first tile.
struct LinePart {
  int first, end;            // items
  int first_image, first_y;  // the first tile: its image, and where in that
  int tiles;                 // that the part meets
};

// The groups of filters that the part meets, from the first one on round the
// end of a tile.
struct LineGroups {
  int first, count;
};

__device__ __forceinline__ LinePart PartOfBlock(const LinePlan& plan) {
  LinePart part;
  const int tile_items = plan.tile_items();
  const unsigned before = blockIdx.x * plan.block_items;
  const int first_tile = before / tile_items;
  part.first = before - first_tile * tile_items;
  part.end =
      part.first + min(plan.block_items, static_cast<int>(plan.items - before));
  part.first_image = plan.tiles_y == 1 ? first_tile : first_tile / plan.tiles_y;
  part.first_y = first_tile - part.first_image * plan.tiles_y;
  part.tiles = Divide(part.end - 1, plan.tile_items_magic) + 1;
  return part;
}

__device__ __forceinline__ LineGroups GroupsOf(const LinePlan& plan,
                                               const LinePart& part) {
  const int first = Divide(part.first, plan.positions_magic);
  return {first, min(Divide(part.end - 1, plan.positions_magic) - first + 1,
                     plan.groups)};
}

// Starts the copy of the inputs of `tiles` tiles, which begin with the
// tile_y-th one of the image `from`, by vectors of kFloats floats.
template <int kFloats>
__device__ __forceinline__ void CopyTilesAs(const LinePlan& plan,
                                            const float* from, int tile_y,
                                            int tiles, float* to) {
  const int vectors = tiles * plan.input_rows * plan.copy_columns;
#pragma unroll 1
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    const int row = Divide(i, plan.copy_columns_magic);
    const int column = (i - row * plan.copy_columns) * kFloats;
    const int tile = Divide(row, plan.input_rows_magic);
    const int image = Divide(tile_y + tile, plan.tiles_y_magic);
    const int h = (tile_y + tile - image * plan.tiles_y) * plan.groups_y + row -
                  tile * plan.input_rows;
    if (h < plan.H) {
      __pipeline_memcpy_async(to + row * plan.pitch + column,
                              from + (image * plan.H + h) * plan.W + column,
                              4 * kFloats);
    }
  }
}

// The same for images amid zeros.
__device__ __forceinline__ void CopyPaddedTiles(const LinePlan& plan,
                                                const float* from, int tile_y,
                                                int tiles, float* to) {
  const auto row_of = [&](int row) {
    const int tile = Divide(row, plan.input_rows_magic);
    const int image = Divide(tile_y + tile, plan.tiles_y_magic);
    return RowOfInset(plan.inset, image,
                      (tile_y + tile - image * plan.tiles_y) * plan.groups_y +
                          row - tile * plan.input_rows);
  };
  const int rows = tiles * plan.input_rows;
  if (plan.copy_floats == 2) {
    CopyRowsOfInset<2>(plan.inset, rows, plan.copy_columns, /*first_column=*/0,
                       plan.pitch, from, to, row_of);
  } else {
    CopyRowsOfInset<1>(plan.inset, rows, plan.copy_columns, /*first_column=*/0,
                       plan.pitch, from, to, row_of);
  }
}

// The same for a block's tiles by vectors of plan.copy_floats floats, where
// `from` is the first tile's image.
__device__ __forceinline__ void CopyTiles(const LinePlan& plan,
                                          const LinePart& part,
                                          const float* from, float* to) {
  if (plan.padded) {
    CopyPaddedTiles(plan, from, part.first_y, part.tiles, to);
  } else if (plan.copy_floats == 4) {
    CopyTilesAs<4>(plan, from, part.first_y, part.tiles, to);
  } else if (plan.copy_floats == 2) {
    CopyTilesAs<2>(plan, from, part.first_y, part.tiles, to);
  } else {
    CopyTilesAs<1>(plan, from, part.first_y, part.tiles, to);
  }
}

// Starts the copy of the filters that the block needs.
template <int kTaps>
__device__ __forceinline__ void CopyGroups(const LinePlan& plan,
                                           const LineGroups& groups,
                                           const float* k, float* to) {
#pragma unroll 1
  for (unsigned i = threadIdx.x; i < groups.count * (kFewFilters * kTaps);
       i += blockDim.x) {
    const unsigned place = i / kTaps;
    const unsigned tap = i - place * kTaps;
    int m = groups.first * kFewFilters + place;
    if (m >= plan.groups * kFewFilters) m -= plan.groups * kFewFilters;
    if (m < plan.M) {
      __pipeline_memcpy_async(
          to + (place / kFewFilters * kTaps + tap) * kFewFilters +
              place % kFewFilters,
          k + m * kTaps + tap, 4);
    }
  }
}

// Computes item i of the part and stores its outputs. `to` is the first output
// of the first tile's image. With kFused the plan has an epilogue.
template <int kK, bool kFused>
__device__ __forceinline__ void ComputeItem(const LinePlan& plan,
                                            const LinePart& part,
                                            const LineGroups& groups, int i,
                                            const float* filters,
                                            const float* inputs, float* to) {
  const int area = plan.H_out * plan.W_out;
  const int tile = Divide(i, plan.tile_items_magic);
  const int group_of_all = Divide(i, plan.positions_magic);
  const int position = i - group_of_all * plan.positions;
  const int row = Divide(position, plan.groups_x_magic);
  const int column = (position - row * plan.groups_x) * kFewColumns;
  const int group = group_of_all - tile * plan.groups;
  int place = group - groups.first;
  if (place < 0) place += plan.groups;
  const float* const in =
      inputs + tile * plan.plane() + row * plan.pitch + column;
  const float4* const taps =
      reinterpret_cast<const float4*>(filters) + place * (kK * kK);
  FewSums<1> sums = {};
#pragma unroll
  for (int p = 0; p < kK; ++p) {
    MultiplyRow<kK, 1>(in + p * plan.pitch, 0, taps + p * kK, kK, sums);
  }
  const int image = Divide(part.first_y + tile, plan.tiles_y_magic);
  const int h =
      (part.first_y + tile - image * plan.tiles_y) * plan.groups_y + row;
  const int m = group * kFewFilters;
  if constexpr (kFused) FinishSums<1>(plan.epilogue, m, plan.M - m, sums);
  StoreSums<1>(
      plan, sums, plan.M - m, plan.H_out - h, plan.W_out - column,
      to + (int64_t{image} * plan.M + m) * area + h * plan.W_out + column);
}

template <int kK, bool kFused>
__global__ void __launch_bounds__(kLineMostThreads, 2)
    FewImagesLineKernel(const float* __restrict__ x,
                        const float* __restrict__ k, float* __restrict__ y,
                        const __grid_constant__ LinePlan plan) {
  extern __shared__ float4 shared[];
  float* const filters = reinterpret_cast<float*>(shared);
  float* const inputs = filters + plan.filter_floats();
  const LinePart part = PartOfBlock(plan);
  const LineGroups groups = GroupsOf(plan, part);
  // Before it reads x or k, or writes y.
  WaitForKernelBefore();
  LetNextKernelStart();
  CopyTiles(
      plan, part,
      x + int64_t{part.first_image} * (plan.inset.height * plan.inset.width),
      inputs);
  CopyGroups<kK * kK>(plan, groups, k, filters);
  __pipeline_commit();
  float* const to =
      y + int64_t{part.first_image} * plan.M * (plan.H_out * plan.W_out);
  __pipeline_wait_prior(0);
  __syncthreads();
#pragma unroll 1
  for (int i = part.first + threadIdx.x; i < part.end; i += blockDim.x) {
    ComputeItem<kK, kFused>(plan, part, groups, i, filters, inputs, to);
  }
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_LINE_KERNEL_CUH_
