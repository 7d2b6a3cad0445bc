// Where the blocks and threads of the general kernel work, and how the inputs
// and the weights of a chunk of taps come to shared memory (general.cu).
#ifndef KERNELS_OPERATION_CUDA_GENERAL_TILES_CUH_
#define KERNELS_OPERATION_CUDA_GENERAL_TILES_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/async_copy.cuh"
#include "kernels/operation/cuda/general_plan.h"

namespace convlab::cuda {

// Threads that copy a row together: what a sector of memory holds.
constexpr int kGroup = 8;

// Brings element `i` of floats or halves, or zero, to shared memory before the
// next barrier behind WaitForCopies.
__device__ __forceinline__ void Bring(float* to, const void* from, int64_t i,
                                      bool exists, bool halves) {
  if (halves) {
    *to = exists ? __half2float(static_cast<const __half*>(from)[i]) : 0;
    return;
  }
  const float* const floats = static_cast<const float*>(from);
#if __CUDA_ARCH__ >= 800
  StartCopy<4>(to, floats + i, exists);
#else
  *to = exists ? __ldg(floats + i) : 0;
#endif
}

struct Tile {
  int64_t image;
  int images;       // that exist
  int row, column;  // of outputs
  int filter;       // the first
};

// From a tile's first image to its image `image`: a product of 32-bit numbers,
// because a tile has several images only where they are that near (ForTiles).
__device__ __forceinline__ int64_t ImageOffset(int image, const Steps& steps) {
  return int64_t{image} * static_cast<int>(steps.b);
}

__device__ __forceinline__ Tile FindTile(const GeneralPlan& plan) {
  const int block = static_cast<int>(blockIdx.x);
  Tile tile;
  const int place = plan.by_filter_groups.Quotient(block);
  tile.filter = (block - place * plan.filter_groups) * plan.filters;
  const int line = plan.by_tiles_x.Quotient(place);
  tile.column = (place - line * plan.tiles_x) * plan.columns;
  const int group = plan.by_tiles_y.Quotient(line);
  tile.row = (line - group * plan.tiles_y) * plan.rows;
  tile.image = int64_t{group} * plan.images;
  tile.images =
      static_cast<int>(min(int64_t{plan.images}, plan.batch - tile.image));
  return tile;
}

// The first tap of a chunk, and how many there are of each.
struct Chunk {
  int channel, row, column;
  int channels;
  int first, taps;
};

__device__ __forceinline__ Chunk FindChunk(const GeneralPlan& plan, int chunk) {
  const int line = plan.by_column_chunks.Quotient(chunk);
  const int group = plan.by_row_chunks.Quotient(line);
  Chunk found;
  found.column = (chunk - line * plan.column_chunks) * plan.chunk_columns;
  found.row = (line - group * plan.row_chunks) * plan.chunk_rows;
  found.channel = group * plan.chunk_channels;
  found.channels = min(plan.chunk_channels, plan.C - found.channel);
  found.first = (found.channel * plan.KH + found.row) * plan.KW + found.column;
  found.taps = found.channels * min(plan.chunk_rows, plan.KH - found.row) *
               min(plan.chunk_columns, plan.KW - found.column);
  return found;
}

// Columns before the tile's first that a row's first vector has.
__device__ __forceinline__ int SkippedColumns(const GeneralPlan& plan,
                                              const Tile& tile) {
  return plan.vectors ? (tile.column * plan.stride_x - plan.left) & 3 : 0;
}

// Where row `row` and column `column` of a chunk's inputs are in x. Inputs of
// the chunk are found from here, so that each takes few instructions.
__device__ __forceinline__ int64_t InputOffset(const GeneralPlan& plan,
                                               const Tile& tile,
                                               const Chunk& chunk, int row,
                                               int column) {
  return tile.image * plan.in.b + int64_t{chunk.channel} * plan.in.c +
         int64_t{row} * plan.in.h + int64_t{column} * plan.in.w;
}

template <bool kHalves>
__device__ __forceinline__ void BringInputs(const GeneralPlan& plan,
                                            const Tile& tile,
                                            const Chunk& chunk,
                                            const void* __restrict__ x,
                                            float* to) {
  const int t = static_cast<int>(threadIdx.x);
  const int first_row = tile.row * plan.stride_y - plan.top + chunk.row;
  const int first_column =
      tile.column * plan.stride_x - plan.left + chunk.column;
  const int rows = chunk.channels * plan.images * plan.in_rows;
  const int row_step = static_cast<int>(blockDim.x) / kGroup;
  const int skipped = SkippedColumns(plan, tile);
  const int64_t begin = InputOffset(plan, tile, chunk, first_row, first_column);
  for (int r = t / kGroup; r < rows; r += row_step) {
    const int c = plan.by_rows_of_channel.Quotient(r);
    const int rest = r - c * (plan.images * plan.in_rows);
    const int image = plan.by_in_rows.Quotient(rest);
    const int row = rest - image * plan.in_rows;
    const int h = first_row + row;
    const bool row_exists =
        image < tile.images &&
        static_cast<unsigned>(h) < static_cast<unsigned>(plan.H);
    const int64_t from = begin + ImageOffset(image, plan.in) +
                         int64_t{c} * plan.in.c + int64_t{row} * plan.in.h;
    float* const row_to = to + c * plan.channel_pitch +
                          image * plan.image_pitch + row * plan.row_pitch +
                          skipped;
    for (int column = t % kGroup; column < plan.in_columns; column += kGroup) {
      const int w = first_column + column;
      const bool exists = row_exists && static_cast<unsigned>(w) <
                                            static_cast<unsigned>(plan.W);
      const int place = plan.by_phases.Quotient(column);
      const int phase = column - place * plan.phases;
      Bring(row_to + phase * plan.phase_pitch + place, x,
            from + int64_t{column} * plan.in.w, exists,
            kHalves && plan.halves_x);
    }
  }
}

// A vector of four inputs, where rows are multiples of four columns: it is in
// the image or outside of it as a whole.
struct Vector {
  int64_t from;  // in x, from the chunk's first
  int to;        // in the chunk's inputs
  bool exists;
};

// Vector i of a chunk's inputs, where the tile begins at an input's row and
// column.
__device__ __forceinline__ Vector FindVector(const GeneralPlan& plan,
                                             const Tile& tile,
                                             const Chunk& chunk, int first_row,
                                             int first_column, int i) {
  const int r = plan.by_row_vectors.Quotient(i);
  const int v = i - r * plan.row_vectors;
  const int c = plan.by_rows_of_channel.Quotient(r);
  const int rest = r - c * (plan.images * plan.in_rows);
  const int image = plan.by_in_rows.Quotient(rest);
  const int row = rest - image * plan.in_rows;
  const int h = first_row + row;
  const int w = first_column + 4 * v;
  Vector vector;
  vector.exists = image < tile.images &&
                  static_cast<unsigned>(h) < static_cast<unsigned>(plan.H) &&
                  static_cast<unsigned>(w) < static_cast<unsigned>(plan.W);
  vector.from = ImageOffset(image, plan.in) + int64_t{c} * plan.in.c +
                (row * plan.in.h + 4 * v);
  vector.to = c * plan.channel_pitch + image * plan.image_pitch +
              row * plan.row_pitch + 4 * v;
  return vector;
}

// BringInputs in vectors, for a plan with vectors and x at a multiple of 16
// bytes.
__device__ __forceinline__ void BringVectors(const GeneralPlan& plan,
                                             const Tile& tile,
                                             const Chunk& chunk,
                                             const float* __restrict__ x,
                                             float* to) {
  const int first_row = tile.row * plan.stride_y - plan.top + chunk.row;
  const int first_column =
      tile.column * plan.stride_x - plan.left - SkippedColumns(plan, tile);
  x += InputOffset(plan, tile, chunk, first_row, first_column);
  const int count =
      chunk.channels * plan.images * plan.in_rows * plan.row_vectors;
  for (int i = static_cast<int>(threadIdx.x); i < count;
       i += static_cast<int>(blockDim.x)) {
    const Vector vector =
        FindVector(plan, tile, chunk, first_row, first_column, i);
#if __CUDA_ARCH__ >= 800
    StartCopy<16>(to + vector.to, x + vector.from, vector.exists);
#else
    *reinterpret_cast<float4*>(to + vector.to) =
        vector.exists ? __ldg(reinterpret_cast<const float4*>(x + vector.from))
                      : make_float4(0, 0, 0, 0);
#endif
  }
}

// The same of halves, at a multiple of 8 bytes. They become floats on their
// way, so that they come by registers, a few vectors at a time.
__device__ __forceinline__ void BringVectors(const GeneralPlan& plan,
                                             const Tile& tile,
                                             const Chunk& chunk,
                                             const __half* __restrict__ x,
                                             float* to) {
  constexpr int kAtOnce = 4;
  const int first_row = tile.row * plan.stride_y - plan.top + chunk.row;
  const int first_column =
      tile.column * plan.stride_x - plan.left - SkippedColumns(plan, tile);
  x += InputOffset(plan, tile, chunk, first_row, first_column);
  const int count =
      chunk.channels * plan.images * plan.in_rows * plan.row_vectors;
  const int threads = static_cast<int>(blockDim.x);
  const auto floats = [](uint32_t two) {
    return __half22float2(*reinterpret_cast<const __half2*>(&two));
  };
  for (int i = static_cast<int>(threadIdx.x); i < count;
       i += kAtOnce * threads) {
    uint2 halves[kAtOnce];
    int places[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      // Beyond the last it is the last once more.
      const Vector vector =
          FindVector(plan, tile, chunk, first_row, first_column,
                     min(i + j * threads, count - 1));
      halves[j] = vector.exists
                      ? __ldg(reinterpret_cast<const uint2*>(x + vector.from))
                      : make_uint2(0, 0);
      places[j] = vector.to;
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const float2 first = floats(halves[j].x), last = floats(halves[j].y);
      *reinterpret_cast<float4*>(to + places[j]) =
          make_float4(first.x, first.y, last.x, last.y);
    }
  }
}

// A group of threads takes neighbouring taps, the next one another filter.
template <bool kHalves>
__device__ __forceinline__ void BringWeights(const GeneralPlan& plan,
                                             const Tile& tile,
                                             const Chunk& chunk,
                                             const void* __restrict__ k,
                                             float* to) {
  const int t = static_cast<int>(threadIdx.x);
  for (int m = t / kGroup; m < plan.filters;
       m += static_cast<int>(blockDim.x) / kGroup) {
    const bool exists = tile.filter + m < plan.M;
    const int64_t from = int64_t{tile.filter + m} * plan.taps + chunk.first;
    for (int tap = t % kGroup; tap < chunk.taps; tap += kGroup) {
      Bring(to + tap * plan.weight_pitch + m, k, from + tap, exists,
            kHalves && plan.halves_in);
    }
  }
}

// Position `p` of the block's: whether it is one, and its image, row and column
// in the tile.
struct Position {
  bool exists;
  int image, row, column;
};

__device__ __forceinline__ Position FindPosition(const GeneralPlan& plan,
                                                 int p) {
  Position found;
  const int size = plan.rows * plan.columns;
  found.image = plan.by_tile.Quotient(p);
  const int rest = p - found.image * size;
  found.row = plan.by_columns.Quotient(rest);
  found.column = rest - found.row * plan.columns;
  found.exists = found.image < plan.images;
  return found;
}

}  // namespace convlab::cuda

#endif  // KERNELS_OPERATION_CUDA_GENERAL_TILES_CUH_
