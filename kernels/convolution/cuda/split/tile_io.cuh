// How a tile of tensor_split (kernel.cuh) comes into shared memory as scaled
// halves, and how its outputs leave through the stage.
#ifndef KERNELS_CONVOLUTION_CUDA_SPLIT_TILE_IO_CUH_
#define KERNELS_CONVOLUTION_CUDA_SPLIT_TILE_IO_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/split/plan.h"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// What the warps of a team tell each other in shared memory.
struct SplitShared {
  Extent extents[kSplitMostWarps];  // of what each has seen of a tile
  AllFilters all_filters;           // of the filters
  int doubtful;                     // DoubtfulTiles::count
};
static_assert(sizeof(SplitShared) <= 4 * kSplitSharedWords);

// A team of warps, which share a tile, and its part of shared memory.
struct SplitTeam {
  int index;  // in the block
  int threads;
  int g, t;             // lane = 4 * g + t: its unit, and its columns
  int tid, warp, lane;  // of the thread, in the team
  SplitShared* shared;  // what its warps tell each other
  float* stage;
  uint32_t* high;  // the tile's inputs, as high halves and as low ones
  uint32_t* low;

  // Waits for all warps of the team.
  __device__ __forceinline__ void Sync() const {
    SyncGroup(1 + index, threads);
  }
};

// A tile: where its inputs and outputs are, and how large it is at the image's
// edges.
struct SplitTile {
  const float* from;  // the first input of channel 0
  int top, left;      // its place in the image in memory, which may be outside
  float* to;          // the first output of filter 0
  int64_t area;       // from channel to channel
  int rows, columns;  // of outputs
  int input_rows, input_columns;
  int above;       // rows of inputs before the first in memory: zeros
  int inset_rows;  // rows of inputs in memory
};

// kWords neighbouring words; where they are 2 or 4, their address is a multiple
// of their size.
template <int kWords>
__device__ __forceinline__ void StoreWords(const uint32_t (&words)[kWords],
                                           uint32_t* to) {
  if constexpr (kWords == 4) {
    *reinterpret_cast<uint4*>(to) = {words[0], words[1], words[2], words[3]};
  } else if constexpr (kWords == 2) {
    *reinterpret_cast<uint2*>(to) = {words[0], words[1]};
  } else {
#pragma unroll
    for (int i = 0; i < kWords; ++i) to[i] = words[i];
  }
}

// How a plane is copied (SplitPlan::linear, padded): as one row, row by row, as
// one row to rows amid zeros, or row by row with zeros where x has no values.
enum class CopyMode { kLinear, kRows, kInset, kPadded };

// Copies a plane to shared memory as scaled halves, with zeros for channels
// that do not exist; `extent` grows by the values. An element is
// the kCp values of a pixel, or two pixels if kCp is 1.
template <int kCp, CopyMode kMode>
__device__ __forceinline__ void CopyPlane(const SplitPlan& plan,
                                          const SplitTeam& team,
                                          const SplitTile& tile, int plane,
                                          float scale, Extent& extent) {
  constexpr int kAtOnce = kCp == 1 ? 8 : kCp == 2 ? 8 : kCp == 4 ? 6 : 4;
  constexpr int kValues = kCp == 1 ? 2 : kCp;
  constexpr int kWords = kValues / 2;
  constexpr int kPixels = kCp == 1 ? 2 : 1;  // of an element
  constexpr bool kPadded = kMode == CopyMode::kPadded;
  constexpr bool kInset = kMode == CopyMode::kInset;
  constexpr bool kOneRow = kMode == CopyMode::kLinear || kInset;
  const float* from = tile.from + int64_t{plane} * kCp * tile.area;
  const int channels = plan.C - plane * kCp;
  int place = plane * plan.plane_words;
  if constexpr (kInset) {
    from += tile.above * plan.copy_columns - tile.left;
    place += tile.above * plan.pitch - tile.left * kWords;
  }
  uint32_t* const high = team.high + place;
  uint32_t* const low = team.low + place;
  const int count =
      kMode == CopyMode::kLinear
          ? tile.input_rows * plan.W / kPixels
          : (kInset ? tile.inset_rows : tile.input_rows) * plan.copy_columns;
  for (int first = team.tid; first < count; first += team.threads * kAtOnce) {
    float v[kAtOnce][kValues];
    int to[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int e = first + team.threads * i;
      if constexpr (kOneRow) {
        to[i] = e * kWords;
        if constexpr (kInset) {
          to[i] += Divide(e, plan.copy_columns_magic) *
                   (plan.pitch - plan.copy_columns * kWords);
        }
        if constexpr (kCp == 1) {
          const float2 pair =
              e < count ? __ldcs(reinterpret_cast<const float2*>(from) + e)
                        : float2{0, 0};
          v[i][0] = pair.x, v[i][1] = pair.y;
        } else {
#pragma unroll
          for (int j = 0; j < kCp; ++j) {
            v[i][j] = e < count && j < channels
                          ? __ldcs(from + j * tile.area + e)
                          : 0.f;
          }
        }
      } else {
        const int row = Divide(e, plan.copy_columns_magic);
        const int column = (e - row * plan.copy_columns) * kPixels;
        const float* const at =
            from + int64_t{row} * (kPadded ? plan.inset.width : plan.W) +
            column;
        const bool row_exists =
            !kPadded || static_cast<unsigned>(tile.top + row) <
                            static_cast<unsigned>(plan.inset.height);
        to[i] = row * plan.pitch + column / kPixels * kWords;
#pragma unroll
        for (int j = 0; j < kValues; ++j) {
          const int pixel = kCp == 1 ? column + j : column;
          const bool pixel_exists =
              pixel < tile.input_columns &&
              (!kPadded || static_cast<unsigned>(tile.left + pixel) <
                               static_cast<unsigned>(plan.inset.width));
          const bool exists = e < count && row_exists && pixel_exists;
          const float* const value = at + (kCp == 1 ? j : j * tile.area);
          if constexpr (kPadded) {
            // No branch, at whose end the compiler would wait for the load.
            v[i][j] =
                LoadIfBelow(kCp == 1 ? 0 : j, exists ? channels : 0, value);
          } else {
            v[i][j] = exists && (kCp == 1 || j < channels) ? *value : 0.f;
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + team.threads * i >= count) continue;
      uint32_t h[kWords], l[kWords];
#pragma unroll
      for (int j = 0; j < kWords; ++j) {
        const float a = v[i][2 * j], b = v[i][2 * j + 1];
        extent.Add(a), extent.Add(b);
        Split(a * scale, b * scale, h[j], l[j]);
      }
      StoreWords(h, high + to[i]);
      StoreWords(l, low + to[i]);
    }
  }
}

// Writes zeros for the rows of inputs that are not in memory, before a tile's
// planes are copied as one row each.
__device__ __forceinline__ void ClearRowsAround(const SplitPlan& plan,
                                                const SplitTeam& team,
                                                const SplitTile& tile) {
  const int zeros = tile.input_rows - tile.inset_rows;
  for (int plane = 0; plane < plan.planes; ++plane) {
    for (int i = team.tid; i < zeros * plan.pitch; i += team.threads) {
      int at = plane * plan.plane_words + i;
      if (i >= tile.above * plan.pitch) at += tile.inset_rows * plan.pitch;
      team.high[at] = team.low[at] = 0;
    }
  }
}

template <int kCp, bool kPadded>
__device__ __forceinline__ void CopyPlanes(const SplitPlan& plan,
                                           const SplitTeam& team,
                                           const SplitTile& tile, float scale,
                                           Extent& extent) {
  for (int plane = 0; plane < plan.planes; ++plane) {
    if constexpr (kPadded) {
      if (kCp > 1 && plan.linear) {
        CopyPlane<kCp, CopyMode::kInset>(plan, team, tile, plane, scale,
                                         extent);
      } else {
        CopyPlane<kCp, CopyMode::kPadded>(plan, team, tile, plane, scale,
                                          extent);
      }
    } else if (plan.linear) {
      CopyPlane<kCp, CopyMode::kLinear>(plan, team, tile, plane, scale, extent);
    } else {
      CopyPlane<kCp, CopyMode::kRows>(plan, team, tile, plane, scale, extent);
    }
  }
}

// Copies all planes. Returns the extent of what the thread saw.
template <bool kPadded>
__device__ __forceinline__ Extent CopyTile(const SplitPlan& plan,
                                           const SplitTeam& team,
                                           const SplitTile& tile, float scale) {
  Extent extent;
  switch (plan.plane_channels) {
    case 1:
      CopyPlanes<1, kPadded>(plan, team, tile, scale, extent);
      break;
    case 2:
      CopyPlanes<2, kPadded>(plan, team, tile, scale, extent);
      break;
    case 4:
      CopyPlanes<4, kPadded>(plan, team, tile, scale, extent);
      break;
    case 6:
      CopyPlanes<6, kPadded>(plan, team, tile, scale, extent);
      break;
    default:
      CopyPlanes<8, kPadded>(plan, team, tile, scale, extent);
      break;
  }
  return extent;
}

// Brings an item's sums to the stage, as they are. Lane 4 * g + t has columns 8
// * n + 2 * t and 8 * n + 2 * t + 1 of the product, of unit g. `to` is the
// place of the unit's first row and column in the stage's first filter,
// `column` its column in the tile, and `first` the lane's first column of the
// product in the phase.
template <int kR, int kNT>
__device__ __forceinline__ void StageSums(const SplitPlan& plan,
                                          const float (&sum)[kR / 2][kNT][4],
                                          int first, int column, int columns,
                                          float* to) {
  constexpr int kS = kR / 2;
  const auto value = [&](int row, int n, int e) {
    return sum[row % kS][n][row / kS * 2 + e];
  };
  if (plan.shifts == 1) {
    if (column >= columns) return;
#pragma unroll
    for (int n = 0; n < kNT; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float* at = to + (first + 8 * n + e) * plan.stage_pitch;
#pragma unroll
        for (int row = 0; row < kR; ++row, at += columns) {
          *at = value(row, n, e);
        }
      }
    }
    return;
  }
  const bool pairs = columns % 2 == 0;
#pragma unroll
  for (int n = 0; n < kNT; ++n) {
    const int m = (first + 8 * n) >> plan.shift_log;
    const int shift = first + 8 * n - (m << plan.shift_log);
    if (column + shift >= columns) continue;
    float* at = to + m * plan.stage_pitch + shift;
    if (pairs) {
#pragma unroll
      for (int row = 0; row < kR; ++row, at += columns) {
        *reinterpret_cast<float2*>(at) = {value(row, n, 0), value(row, n, 1)};
      }
    } else {
      const bool second = column + shift + 1 < columns;
#pragma unroll
      for (int row = 0; row < kR; ++row, at += columns) {
        at[0] = value(row, n, 0);
        if (second) at[1] = value(row, n, 1);
      }
    }
  }
}

// Copies the first `count` floats of each of `filters` filters from the stage
// to the output, where filters are `area` floats apart, and takes back the
// scales of scaled_filters and of the inputs, 2^exponent. A warp writes whole
// lines of 128 bytes, and has several filters on the way.
__device__ __forceinline__ void StoreWholeRows(
    const float* stage, int pitch, float* out, int area, int filters, int count,
    int warp, int warps, int lane, const ScaledFilter* scaled_filters,
    int exponent) {
  constexpr int kAtOnce = 6;
  for (int first = warp; first < filters; first += kAtOnce * warps) {
    const float* from[kAtOnce];
    float* to[kAtOnce];
    int at[kAtOnce];  // the lane's float, which may be none
    float scale[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int m = first + i * warps;
      to[i] = out + int64_t{m} * area;
      const int skew =
          static_cast<int>(reinterpret_cast<uintptr_t>(to[i]) / 4 % 32);
      at[i] = m < filters ? lane - skew : 1 << 30;
      from[i] = stage + m * pitch;
      scale[i] = ScaleBack(
          exponent, ExponentBits(scaled_filters[min(m, filters - 1)].exponent));
    }
    for (int l = 0; l < count + 31; l += 32) {
      float v[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (static_cast<uint32_t>(at[i] + l) < static_cast<uint32_t>(count)) {
          v[i] = from[i][at[i] + l];
        }
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (static_cast<uint32_t>(at[i] + l) < static_cast<uint32_t>(count)) {
          to[i][at[i] + l] = v[i] * scale[i];
        }
      }
    }
  }
}

// The same for tiles of a part of the output's columns.
__device__ __forceinline__ void StorePartRows(
    const SplitPlan& plan, const float* stage, float* out, int area,
    int filters, int rows, int columns, int warp, int lane,
    const ScaledFilter* scaled_filters, int exponent) {
  for (int m = warp; m < filters; m += plan.warps) {
    const float scale =
        ScaleBack(exponent, ExponentBits(scaled_filters[m].exponent));
    for (int r = 0; r < rows; ++r) {
      for (int i = lane; i < columns; i += 32) {
        out[int64_t{m} * area + r * plan.W_out + i] =
            stage[m * plan.stage_pitch + r * columns + i] * scale;
      }
    }
  }
}

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_SPLIT_TILE_IO_CUH_
