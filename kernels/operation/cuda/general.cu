// Every convolution: register tiles over tiles of the image in shared memory.
//
// Idea. Stride, padding and the filter's shape decide which pixels a sum sees,
// not how it is computed: from the first pixel of an output, a tap always
// stands at the same distance. So a table with one distance for each tap is all
// that differs between operations.
//
// - A block computes a tile of outputs (a part of an image, or several small
//   images) for up to 128 filters. The inputs that the tile needs come to
//   shared memory once for all taps, with zeros for the padding; beside them
//   stand the weights. Where they do not fit, the taps are taken in chunks, of
//   which the next one is copied while one is multiplied.
// - A thread has up to 16 filters at 4 positions, or fewer filters at 8. The
//   threads of a warp share the filters, whose weights all of them read at
//   once, and have neighbouring positions. With a stride of s, columns lie
//   apart by their remainder of s, so that neighbours read neighbours there,
//   too.
//
// Change against direct_tiled, which has the same idea for stride 1. The taps'
// table in place of loops that are unrolled for one size of filter, positions
// that follow each other over the ends of rows and images, and padding that is
// part of the copy.
//
// Cost. A tap takes a thread an addition and a load for each position beside
// the products. Positions of a tile that lie outside of the image, and filters
// beyond the last, compute nothing of use.
//
// Accuracy. Each sum adds its taps by fused multiply-adds in the order c, p, q,
// as the plain loop does: the contract of class fp32 holds as it does there.
//
// Bound. Float32 arithmetic, where there are a few dozen taps; memory below.
#include <cstdint>

#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/operation/cuda/launches.h"

namespace convlab::cuda {
namespace {

constexpr int kFloat = sizeof(float);

extern __shared__ __align__(16) unsigned char general_shared[];

// Brings an element, or zero, to shared memory before the next barrier behind
// WaitForCopies.
__device__ __forceinline__ void Bring(float* to, const float* from,
                                      bool exists) {
#if __CUDA_ARCH__ >= 800
  StartCopy<4>(to, from, exists);
#else
  *to = exists ? __ldg(from) : 0;
#endif
}

struct Tile {
  int64_t image;
  int row, column;  // of outputs
  int filter;       // the first
};

__device__ __forceinline__ Tile FindTile(const GeneralPlan& plan) {
  int block = static_cast<int>(blockIdx.x);
  Tile tile;
  const int place = block / plan.filter_groups;
  tile.filter = (block - place * plan.filter_groups) * plan.filters;
  const int line = place / plan.tiles_x;
  tile.column = (place - line * plan.tiles_x) * plan.columns;
  const int group = line / plan.tiles_y;
  tile.row = (line - group * plan.tiles_y) * plan.rows;
  tile.image = int64_t{group} * plan.images;
  return tile;
}

// The first tap of a chunk, and how many there are of each.
struct Chunk {
  int channel, row, column;
  int channels;
  int first, taps;
};

__device__ __forceinline__ Chunk FindChunk(const GeneralPlan& plan, int chunk) {
  const int line = chunk / plan.column_chunks;
  const int group = line / plan.row_chunks;
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

__device__ __forceinline__ void BringInputs(const GeneralPlan& plan,
                                            const Tile& tile,
                                            const Chunk& chunk,
                                            const float* __restrict__ x,
                                            float* to) {
  const int t = static_cast<int>(threadIdx.x);
  const int first_row = tile.row * plan.stride_y - plan.top + chunk.row;
  const int first_column =
      tile.column * plan.stride_x - plan.left + chunk.column;
  const int rows = chunk.channels * plan.images * plan.in_rows;
  const int row_step = static_cast<int>(blockDim.x) / plan.row_lanes;
  const int lane = t & (plan.row_lanes - 1);
  for (int r = t / plan.row_lanes; r < rows; r += row_step) {
    const int c = plan.by_rows_of_channel.Quotient(r);
    const int rest = r - c * (plan.images * plan.in_rows);
    const int image = plan.by_in_rows.Quotient(rest);
    const int row = rest - image * plan.in_rows;
    const int h = first_row + row;
    const bool row_exists =
        tile.image + image < plan.batch &&
        static_cast<unsigned>(h) < static_cast<unsigned>(plan.H);
    const float* const from = x + (tile.image + image) * plan.in.b +
                              int64_t{chunk.channel + c} * plan.in.c +
                              int64_t{h} * plan.in.h;
    float* const row_to = to + c * plan.channel_pitch +
                          image * plan.image_pitch + row * plan.row_pitch;
    for (int column = lane; column < plan.in_columns;
         column += plan.row_lanes) {
      const int w = first_column + column;
      const bool exists = row_exists && static_cast<unsigned>(w) <
                                            static_cast<unsigned>(plan.W);
      const int place = plan.by_stride.Quotient(column);
      const int phase = column - place * plan.stride_x;
      Bring(row_to + phase * plan.phase_pitch + place,
            exists ? from + int64_t{w} * plan.in.w : x, exists);
    }
  }
}

// Eight threads take neighbouring taps, the next eight another filter.
__device__ __forceinline__ void BringWeights(const GeneralPlan& plan,
                                             const Tile& tile,
                                             const Chunk& chunk,
                                             const float* __restrict__ k,
                                             float* to) {
  const int t = static_cast<int>(threadIdx.x);
  for (int m = t / 8; m < plan.filters; m += static_cast<int>(blockDim.x) / 8) {
    const bool exists = tile.filter + m < plan.M;
    const float* const from =
        exists ? k + int64_t{tile.filter + m} * plan.taps + chunk.first : k;
    for (int tap = t % 8; tap < chunk.taps; tap += 8) {
      Bring(to + tap * plan.weight_pitch + m, from + (exists ? tap : 0),
            exists);
    }
  }
}

// A thread's weights of one tap.
template <int kFilters>
__device__ __forceinline__ void LoadWeights(const float* from,
                                            float (&to)[kFilters]) {
  if constexpr (kFilters % 4 == 0) {
#pragma unroll
    for (int f = 0; f < kFilters; f += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + f);
      to[f] = four.x, to[f + 1] = four.y, to[f + 2] = four.z,
      to[f + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int f = 0; f < kFilters; ++f) to[f] = from[f];
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

template <int kFilters, int kPositions>
__global__ void __launch_bounds__(kGeneralMostThreads, 2)
    GeneralKernel(const float* __restrict__ x, const float* __restrict__ k,
                  const float* __restrict__ bias, float* __restrict__ y,
                  const __grid_constant__ GeneralPlan plan) {
  int* const table = reinterpret_cast<int*>(general_shared);
  float* const stages = reinterpret_cast<float*>(table + plan.chunk_taps);
  const int t = static_cast<int>(threadIdx.x);
  const Tile tile = FindTile(plan);
  const auto bring = [&](int index) {
    const Chunk chunk = FindChunk(plan, index);
    float* const stage = stages + index % plan.stages * plan.stage_floats;
    BringInputs(plan, tile, chunk, x, stage);
    BringWeights(plan, tile, chunk, k, stage + plan.input_floats);
  };
  bring(0);
  CommitCopies();

  // The taps' distances from the first, in bytes.
  for (int tap = t; tap < plan.chunk_taps;
       tap += static_cast<int>(blockDim.x)) {
    const int c = plan.by_chunk_filter.Quotient(tap);
    const int rest = tap - c * (plan.chunk_rows * plan.chunk_columns);
    const int p = plan.by_chunk_columns.Quotient(rest);
    const int q = rest - p * plan.chunk_columns;
    const int place = plan.by_stride.Quotient(q);
    table[tap] =
        kFloat * (c * plan.channel_pitch + p * plan.row_pitch +
                  (q - place * plan.stride_x) * plan.phase_pitch + place);
  }
  const int warp = t / 32;
  const int filter = warp % plan.filter_warps * kFilters;
  const int first_position =
      warp / plan.filter_warps * (32 * kPositions) + t % 32;
  int begin[kPositions];
#pragma unroll
  for (int j = 0; j < kPositions; ++j) {
    const Position position = FindPosition(plan, first_position + 32 * j);
    begin[j] = position.exists
                   ? kFloat * (position.image * plan.image_pitch +
                               position.row * plan.stride_y * plan.row_pitch +
                               position.column)
                   : 0;
  }

  float sums[kFilters][kPositions] = {};
  for (int index = 0; index < plan.chunks; ++index) {
    if (index + 1 < plan.chunks) bring(index + 1);
    CommitCopies();
    WaitForCopies<1>();
    __syncthreads();
    const int taps = FindChunk(plan, index).taps;
    const float* const inputs =
        stages + index % plan.stages * plan.stage_floats;
    const float* weights = inputs + plan.input_floats + filter;
    const auto multiply = [&](int distance) {
      const char* const from = reinterpret_cast<const char*>(inputs) + distance;
      float in[kPositions], weight[kFilters];
#pragma unroll
      for (int j = 0; j < kPositions; ++j) {
        in[j] = *reinterpret_cast<const float*>(from + begin[j]);
      }
      LoadWeights(weights, weight);
      weights += plan.weight_pitch;
#pragma unroll
      for (int f = 0; f < kFilters; ++f) {
#pragma unroll
        for (int j = 0; j < kPositions; ++j) {
          sums[f][j] = fmaf(weight[f], in[j], sums[f][j]);
        }
      }
    };
    int tap = 0;
    for (; tap + 4 <= taps; tap += 4) {
      const int4 four = *reinterpret_cast<const int4*>(table + tap);
      multiply(four.x);
      multiply(four.y);
      multiply(four.z);
      multiply(four.w);
    }
    for (; tap < taps; ++tap) multiply(table[tap]);
    // The stage is filled anew.
    if (index + 1 < plan.chunks) __syncthreads();
  }

#pragma unroll
  for (int j = 0; j < kPositions; ++j) {
    const Position position = FindPosition(plan, first_position + 32 * j);
    const int64_t image = tile.image + position.image;
    const int row = tile.row + position.row;
    const int column = tile.column + position.column;
    if (!position.exists || image >= plan.batch || row >= plan.OH ||
        column >= plan.OW) {
      continue;
    }
    float* const to = y + image * plan.out.b + int64_t{row} * plan.out.h +
                      int64_t{column} * plan.out.w;
#pragma unroll
    for (int f = 0; f < kFilters; ++f) {
      const int m = tile.filter + filter + f;
      if (m >= plan.M) continue;
      const float value =
          bias == nullptr ? sums[f][j] : sums[f][j] + __ldg(bias + m);
      to[int64_t{m} * plan.out.c] = Apply(plan.activation, value);
    }
  }
}

using Function = void (*)(const float*, const float*, const float*, float*,
                          GeneralPlan);

Function FunctionOf(int shape) {
  static_assert(sizeof(kGeneralShapes) / sizeof(kGeneralShapes[0]) == 6);
  switch (shape) {
    case 0:
      return GeneralKernel<kGeneralShapes[0].filters,
                           kGeneralShapes[0].positions>;
    case 1:
      return GeneralKernel<kGeneralShapes[1].filters,
                           kGeneralShapes[1].positions>;
    case 2:
      return GeneralKernel<kGeneralShapes[2].filters,
                           kGeneralShapes[2].positions>;
    case 3:
      return GeneralKernel<kGeneralShapes[3].filters,
                           kGeneralShapes[3].positions>;
    case 4:
      return GeneralKernel<kGeneralShapes[4].filters,
                           kGeneralShapes[4].positions>;
    default:
      return GeneralKernel<kGeneralShapes[5].filters,
                           kGeneralShapes[5].positions>;
  }
}

}  // namespace

Error PrepareGeneral(const GeneralPlan& plan) {
  return AllowAllSharedMemory(
      reinterpret_cast<const void*>(FunctionOf(plan.shape)));
}

Error LaunchGeneral(const GeneralPlan& plan, const float* x, const float* k,
                    const float* bias, float* y, cudaStream_t stream) {
  FunctionOf(plan.shape)<<<static_cast<unsigned>(plan.blocks), 32 * plan.warps,
                           plan.shared_bytes, stream>>>(x, k, bias, y, plan);
  return CheckLaunch("GeneralKernel");
}

}  // namespace convlab::cuda
