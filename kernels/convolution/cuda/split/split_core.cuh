// The convolution on FP16 tensor cores with scaled operands: the kernel of
// tensor_split (class fp32). Needs compute capability 8.0.
//
// The image. Groups of a few warps go from tile to tile, an image or a part of
// one. A group copies a tile's inputs to shared memory as halves, [plane][row]
// [column][channel]; a plane holds 1 to 8 channels. So the values that a filter
// row meets lie side by side, those of the next output begin plane_channels
// halves later, and a filter tap is only an offset.
//
// The product. Its depth runs over planes, filter rows, and a filter row's
// halves in chunks of 8, two of which are one m16n8k16. Chunks may end beyond
// the row: the filters have zeros there. Its columns are filters, or filters
// times `shifts`: column n = filter * shifts + d holds the filter moved d
// pixels to the right, so that a row of the product yields `shifts`
// neighbouring outputs. With one input channel that makes a row begin at a
// word, and it fills the chunk: K = 5 and four shifts are 8 halves. There a
// step takes two filter rows instead of two chunks ("row pairs").
//
// A warp's piece. Rows g and g + 8 of the m16 tile are unit g (of `shifts`
// columns) in two output rows, j and j + kS; tiles j = 0 to kS - 1 make the 2 *
// kS rows of a block. Input rows j + r and j + r + kS are the operands of
// filter row r, and those of j - 1 and r + 1 too: the registers rotate, and one
// row of words is loaded for kS tiles x tiles_n products.
//
// Rounding. Tensor cores cut bits off where they add, so that long chains lose
// accuracy: the sums over a step's filter rows are added to the piece's sums by
// ordinary additions.
//
// The output. A phase is what a group computes between two barriers: some row
// blocks of some filters. Its sums go to a stage in shared memory and from
// there to the output in whole lines of 128 bytes.
//
// Range. A tile is scaled (halves.cuh) as the one before was; if that was
// wrong, as its own largest value shows, it is copied again. Only that value
// counts in the end.
#ifndef KERNELS_CONVOLUTION_CUDA_SPLIT_SPLIT_CORE_CUH_
#define KERNELS_CONVOLUTION_CUDA_SPLIT_SPLIT_CORE_CUH_

#include <cstdint>
#include <utility>

#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/split/plan.h"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

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

// What a group knows of its tile's inputs.
struct SplitTile {
  const float* from;  // the first input of channel 0
  int64_t area;       // from channel to channel
  int rows, columns;  // that there are
  uint32_t* high;     // where to
  uint32_t* low;
};

// Copies a plane, of which `channels` exist, to shared memory as scaled halves;
// takes the largest magnitude. An element is the kCp values of a pixel, or two
// pixels if kCp is 1.
template <int kCp, bool kLinear>
__device__ __forceinline__ void CopyPlane(const SplitPlan& plan,
                                          const SplitTile& tile, int plane,
                                          float scale, int tid, int threads,
                                          uint32_t& most) {
  constexpr int kAtOnce = kCp == 1 ? 8 : kCp == 2 ? 8 : kCp == 4 ? 6 : 4;
  constexpr int kValues = kCp == 1 ? 2 : kCp;
  constexpr int kWords = kValues / 2;
  constexpr int kPixels = kCp == 1 ? 2 : 1;  // of an element
  const float* const from = tile.from + int64_t{plane} * kCp * tile.area;
  const int channels = plan.C - plane * kCp;
  uint32_t* const high = tile.high + plane * plan.plane_words;
  uint32_t* const low = tile.low + plane * plan.plane_words;
  const int count =
      kLinear ? tile.rows * plan.W / kPixels : tile.rows * plan.copy_columns;
  for (int first = tid; first < count; first += threads * kAtOnce) {
    float v[kAtOnce][kValues];
    int to[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int e = first + threads * i;
      if constexpr (kLinear) {
        to[i] = e * kWords;
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
        const int row = SplitDivide(e, plan.copy_columns_magic);
        const int column = (e - row * plan.copy_columns) * kPixels;
        const float* const at = from + int64_t{row} * plan.W + column;
        to[i] = row * plan.pitch + column / kPixels * kWords;
#pragma unroll
        for (int j = 0; j < kValues; ++j) {
          const bool exists =
              e < count && (kCp == 1 ? column + j < tile.columns
                                     : column < tile.columns && j < channels);
          v[i][j] = exists ? at[kCp == 1 ? j : j * tile.area] : 0.f;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + threads * i >= count) continue;
      uint32_t h[kWords], l[kWords];
#pragma unroll
      for (int j = 0; j < kWords; ++j) {
        const float a = v[i][2 * j], b = v[i][2 * j + 1];
        most = max(most, max(Magnitude(a), Magnitude(b)));
        Split(a * scale, b * scale, h[j], l[j]);
      }
      StoreWords(h, high + to[i]);
      StoreWords(l, low + to[i]);
    }
  }
}

template <int kCp>
__device__ __forceinline__ void CopyPlanes(const SplitPlan& plan,
                                           const SplitTile& tile, float scale,
                                           int tid, int threads,
                                           uint32_t& most) {
  for (int plane = 0; plane < plan.planes; ++plane) {
    if (plan.linear) {
      CopyPlane<kCp, true>(plan, tile, plane, scale, tid, threads, most);
    } else {
      CopyPlane<kCp, false>(plan, tile, plane, scale, tid, threads, most);
    }
  }
}

// All planes; returns the largest magnitude that the thread saw.
__device__ __forceinline__ uint32_t CopyTile(const SplitPlan& plan,
                                             const SplitTile& tile, float scale,
                                             int tid, int threads) {
  uint32_t most = 0;
  switch (plan.plane_channels) {
    case 1:
      CopyPlanes<1>(plan, tile, scale, tid, threads, most);
      break;
    case 2:
      CopyPlanes<2>(plan, tile, scale, tid, threads, most);
      break;
    case 4:
      CopyPlanes<4>(plan, tile, scale, tid, threads, most);
      break;
    case 6:
      CopyPlanes<6>(plan, tile, scale, tid, threads, most);
      break;
    default:
      CopyPlanes<8>(plan, tile, scale, tid, threads, most);
      break;
  }
  return most;
}

// A lane's arranged filters: for each tile of the product's columns its two
// words' high halves and their low halves.
template <bool kShared>
class SplitFilters {
 public:
  // `arranged` points to the lane's first vector.
  __device__ explicit SplitFilters(const char* arranged)
      : global_(arranged), shared_(kShared ? SharedAddress(arranged) : 0) {}

  // Of the tile that is `tile` tiles on; z and w are the low halves.
  __device__ __forceinline__ uint4 All(int tile) const {
    if constexpr (kShared) {
      return LoadShared4(shared_ + tile * kTileBytes);
    } else {
      return __ldg(reinterpret_cast<const uint4*>(global_ + tile * kTileBytes));
    }
  }
  __device__ __forceinline__ uint2 High(int tile) const {
    if constexpr (kShared) {
      return LoadShared2(shared_ + tile * kTileBytes);
    } else {
      return __ldg(reinterpret_cast<const uint2*>(global_ + tile * kTileBytes));
    }
  }
  __device__ __forceinline__ void Advance(int tiles) {
    if (kShared) {
      shared_ += tiles * kTileBytes;
    } else {
      global_ += tiles * kTileBytes;
    }
  }

  static constexpr int kTileBytes = 32 * kSplitVectorBytes;

 private:
  const char* global_;
  uint32_t shared_;
};

// A warp's piece with row pairs: one plane of one chunk. `in` is the lane's
// first word of high halves, the low ones are low_offset bytes on, rows `pitch`
// bytes apart.
template <int kK, int kR, int kNT, typename Filters>
__device__ __forceinline__ void MultiplyRowPairs(uint32_t in,
                                                 uint32_t low_offset,
                                                 uint32_t pitch,
                                                 const Filters& filters,
                                                 float (&sum)[kR / 2][kNT][4]) {
  constexpr int kS = kR / 2;
  constexpr int kSteps = (kK + 1) / 2;
  constexpr int kRows = kR + 2 * kSteps - 1;
  uint32_t high[kRows], low[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i, in += pitch) {
    high[i] = LoadShared<0>(in);
    low[i] = LoadShared<0>(in + low_offset);
  }
  const auto quad = [](const uint32_t(&rows)[kRows], int i, uint32_t(&out)[4]) {
    out[0] = rows[i], out[1] = rows[i + kS];
    out[2] = rows[i + 1], out[3] = rows[i + kS + 1];
  };
  // The small products first, whose sum loses least.
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    uint4 f[kNT];
#pragma unroll
    for (int n = 0; n < kNT; ++n) f[n] = filters.All(s * kNT + n);
#pragma unroll
    for (int j = 0; j < kS; ++j) {
      uint32_t a[4], b[4];
      quad(high, j + 2 * s, a);
      quad(low, j + 2 * s, b);
#pragma unroll
      for (int n = 0; n < kNT; ++n) MultiplyAdd(a, f[n].z, f[n].w, sum[j][n]);
#pragma unroll
      for (int n = 0; n < kNT; ++n) MultiplyAdd(b, f[n].x, f[n].y, sum[j][n]);
    }
  }
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    uint2 f[kNT];
#pragma unroll
    for (int n = 0; n < kNT; ++n) f[n] = filters.High(s * kNT + n);
#pragma unroll
    for (int j = 0; j < kS; ++j) {
      uint32_t a[4];
      quad(high, j + 2 * s, a);
#pragma unroll
      for (int n = 0; n < kNT; ++n) MultiplyAdd(a, f[n].x, f[n].y, sum[j][n]);
    }
  }
}

// The rows of words that a step works on: quad i is the operand of one tile.
template <int kS>
struct SplitWindow {
  uint32_t high[kS][4], low[kS][4];
  uint32_t in, in_low;  // the next row

  // The next row comes in at the bottom of quad i.
  __device__ __forceinline__ void Load(int i, uint32_t pitch) {
    high[i][1] = LoadShared<0>(in), high[i][3] = LoadShared<16>(in);
    in += pitch;
    low[i][1] = LoadShared<0>(in_low), low[i][3] = LoadShared<16>(in_low);
    in_low += pitch;
  }
  // The same after the bottom has moved to the top.
  __device__ __forceinline__ void Advance(int i, uint32_t pitch) {
    high[i][0] = high[i][1], high[i][2] = high[i][3];
    low[i][0] = low[i][1], low[i][2] = low[i][3];
    Load(i, pitch);
  }
};

// Filter row r of a step, whose filters begin at `tile`. The operand of output
// rows j and j + kS is quad (r + j) % kS.
template <int kS, int kNT, typename Filters>
__device__ __forceinline__ void MultiplyRow(int r, int tile, uint32_t pitch,
                                            const Filters& filters,
                                            SplitWindow<kS>& window,
                                            float (&part)[kS][kNT][4]) {
  window.Advance((r + kS - 1) % kS, pitch);
  uint4 f[kNT];
#pragma unroll
  for (int n = 0; n < kNT; ++n) f[n] = filters.All(tile + n);
#pragma unroll
  for (int j = 0; j < kS; ++j) {
#pragma unroll
    for (int n = 0; n < kNT; ++n) {
      MultiplyAdd(window.high[(r + j) % kS], f[n].z, f[n].w, part[j][n]);
    }
  }
#pragma unroll
  for (int j = 0; j < kS; ++j) {
#pragma unroll
    for (int n = 0; n < kNT; ++n) {
      MultiplyAdd(window.low[(r + j) % kS], f[n].x, f[n].y, part[j][n]);
    }
  }
#pragma unroll
  for (int j = 0; j < kS; ++j) {
#pragma unroll
    for (int n = 0; n < kNT; ++n) {
      MultiplyAdd(window.high[(r + j) % kS], f[n].x, f[n].y, part[j][n]);
    }
  }
}

// Moves a step's sums to the piece's.
template <int kS, int kNT>
__device__ __forceinline__ void Promote(float (&part)[kS][kNT][4],
                                        float (&sum)[kS][kNT][4]) {
#pragma unroll
  for (int j = 0; j < kS; ++j) {
#pragma unroll
    for (int n = 0; n < kNT; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        sum[j][n][e] += part[j][n][e];
        part[j][n][e] = 0;
      }
    }
  }
}

// One step of the depth: 16 halves of all filter rows. Filters of any size (kK
// = 0) go in loops of kS rows.
template <int kK, int kS, int kNT, bool kFewRegisters, typename Filters>
__device__ __forceinline__ void MultiplyStep(int K, uint32_t in,
                                             uint32_t low_offset,
                                             uint32_t pitch,
                                             const Filters& filters,
                                             float (&sum)[kS][kNT][4]) {
  float part[kS][kNT][4] = {};
  SplitWindow<kS> window;
  window.in = in, window.in_low = in + low_offset;
#pragma unroll
  for (int i = 0; i < kS; ++i) window.Load(i, pitch);
#pragma unroll
  for (int i = 0; i < kS - 1; ++i) window.Advance(i, pitch);
  if constexpr (kK > 0) {
#pragma unroll
    for (int r = 0; r < kK; ++r) {
      // Keeps the compiler from loading several rows' filters at once.
      if (kFewRegisters) __syncwarp();
      MultiplyRow(r, r * kNT, pitch, filters, window, part);
    }
  } else {
    for (int first = 0; first < K; first += kS) {
#pragma unroll
      for (int r = 0; r < kS; ++r) {
        if (first + r >= K) break;
        MultiplyRow(r, (first + r) * kNT, pitch, filters, window, part);
      }
      if (first % (2 * kS) == kS) Promote(part, sum);
    }
  }
  Promote(part, sum);
}

// A piece's sums to the stage. Lane 4 * g + t has columns 8 * n + 2 * t and the
// next of the product, of unit g. `to` is the place of the unit's first row and
// column in the stage's first filter, `column` its column in the tile, and
// `first` the piece's first column of the product in the phase.
template <int kR, int kNT>
__device__ __forceinline__ void StagePiece(const SplitPlan& plan,
                                           const float (&sum)[kR / 2][kNT][4],
                                           float scale, int first, int column,
                                           int columns, float* to) {
  constexpr int kS = kR / 2;
  const auto value = [&](int row, int n, int e) {
    return sum[row % kS][n][row / kS * 2 + e] * scale;
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

// The first `count` floats of each of `filters` filters, from the stage to the
// output, where filters are `area` floats apart. A warp writes whole lines of
// 128 bytes, and has several filters on the way.
__device__ __forceinline__ void StoreWholeRows(const float* stage, int pitch,
                                               float* out, int area,
                                               int filters, int count, int warp,
                                               int warps, int lane) {
  constexpr int kAtOnce = 6;
  for (int first = warp; first < filters; first += kAtOnce * warps) {
    const float* from[kAtOnce];
    float* to[kAtOnce];
    int at[kAtOnce];  // the lane's float, which may be none
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int m = first + i * warps;
      to[i] = out + int64_t{m} * area;
      const int skew =
          static_cast<int>(reinterpret_cast<uintptr_t>(to[i]) / 4 % 32);
      at[i] = m < filters ? lane - skew : 1 << 30;
      from[i] = stage + m * pitch;
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
          to[i][at[i] + l] = v[i];
        }
      }
    }
  }
}

// The same for rows of a part of the output's columns.
__device__ __forceinline__ void StorePartRows(const SplitPlan& plan,
                                              const float* stage, float* out,
                                              int area, int filters, int rows,
                                              int columns, int warp, int lane) {
  for (int m = warp; m < filters; m += plan.warps) {
    for (int r = 0; r < rows; ++r) {
      for (int i = lane; i < columns; i += 32) {
        out[int64_t{m} * area + r * plan.W_out + i] =
            stage[m * plan.stage_pitch + r * columns + i];
      }
    }
  }
}

#endif

// Shared memory: the arranged filters; then for each group kSplitMostWarps
// largest magnitudes, the stage, high halves, and low halves.
template <int kK, int kR, int kNT, bool kRowPairs, bool kFiltersShared,
          int kThreads>
__global__ void __launch_bounds__(kThreads, 1)
    SplitKernel(const float* __restrict__ x, const float* __restrict__ k,
                const char* __restrict__ arranged,
                const int* __restrict__ filter_exponent, float* __restrict__ y,
                const __grid_constant__ SplitPlan plan) {
#if __CUDA_ARCH__ >= 800
  using Filters = SplitFilters<kFiltersShared>;
  extern __shared__ uint4 shared[];
  constexpr int kS = kR / 2;
  const int threads = plan.warps * 32;
  const int group = threadIdx.x / threads;
  const int tid = threadIdx.x - group * threads;
  const int warp = tid / 32;
  const int lane = tid % 32;
  const int g = lane / 4, t = lane % 4;

  const int64_t filter_bytes = kFiltersShared ? plan.filter_bytes() : 0;
  const char* const filters =
      kFiltersShared ? reinterpret_cast<const char*>(shared) : arranged;
  uint32_t* const own = reinterpret_cast<uint32_t*>(
                            reinterpret_cast<char*>(shared) + filter_bytes) +
                        group * plan.group_words();
  uint32_t* const maxima = own;
  float* const stage = reinterpret_cast<float*>(own + kSplitMostWarps);
  uint32_t* const high = own + kSplitMostWarps + plan.stage_floats;
  uint32_t* const low = high + plan.image_words;
  const auto clear = [&] {
    // Also what no tile reaches: there it is multiplied by zero.
    for (int i = tid; i < 2 * plan.image_words; i += threads) {
      high[i] = 0;
    }
  };
  for (int i = threadIdx.x; i < filter_bytes / 16; i += blockDim.x) {
    shared[i] = reinterpret_cast<const uint4*>(arranged)[i];
  }
  clear();
  if (tid < kSplitMostWarps) maxima[tid] = 0;
  const int filters_exponent = *filter_exponent;
  __syncthreads();

  int exponent = 5;  // of the tile before
  const int strips = plan.strips_y * plan.strips_x;
  const int64_t tiles = plan.tiles();
  const int64_t area = int64_t{plan.H} * plan.W;
  const int out_area = plan.H_out * plan.W_out;
  const int64_t tile_step = int64_t{gridDim.x} * plan.groups;
  for (int64_t index = blockIdx.x + int64_t{gridDim.x} * group; index < tiles;
       index += tile_step) {
    const int64_t b = index / strips;
    const int strip = index - b * strips;
    const int h0 = strip / plan.strips_x * plan.tile_rows;
    const int w0 = strip % plan.strips_x * plan.tile_columns;
    const int tile_rows = min(plan.tile_rows, plan.H_out - h0);
    const int tile_columns = min(plan.tile_columns, plan.W_out - w0);
    float* const out =
        y + b * plan.M * out_area + int64_t{h0} * plan.W_out + w0;
    const SplitTile tile = {
        x + b * plan.C * area + int64_t{h0} * plan.W + w0,
        area,
        tile_rows + plan.K - 1,
        tile_columns + plan.K - 1,
        high,
        low,
    };

    bool scalable = filters_exponent != kNotScalable;
    while (scalable) {
      uint32_t most = CopyTile(plan, tile, PowerOfTwo(exponent), tid, threads);
      most = __reduce_max_sync(0xffffffff, most);
      if (lane == 0) maxima[warp] = most;
      SyncGroup(1 + group, threads);
#pragma unroll
      for (int i = 0; i < kSplitMostWarps; ++i) most = max(most, maxima[i]);
      const int right = most == 0 ? exponent : InputExponent(most);
      const int all = right + filters_exponent;
      scalable = IsFinite(most) && all >= -127 && all <= 126;
      if (!scalable || right == exponent) break;
      exponent = right;
      SyncGroup(1 + group, threads);  // the maxima were read
    }
    if (!scalable) {
      ComputeExactly(plan, tile.from, k, out, tile_rows, tile_columns, 0,
                     plan.M, tid, threads);
      SyncGroup(1 + group, threads);
      clear();
      SyncGroup(1 + group, threads);
      continue;
    }
    if (strips == 1 && index + tile_step < tiles) {
      constexpr int kLine = 32;  // floats
      const float* const next = tile.from + tile_step * plan.C * area;
      for (int64_t i = tid * kLine; i < plan.C * area; i += threads * kLine) {
        PrefetchToL2(next + i);
      }
    }

    const float scale = PowerOfTwo(-(exponent + filters_exponent));
    const int unit_words = plan.shifts * plan.plane_channels / 2;
    const uint32_t pitch = plan.pitch * 4;
    const uint32_t low_offset = plan.image_words * 4;
    const uint32_t high_address = SharedAddress(high);
    const int row_blocks = (tile_rows + kR - 1) / kR;
    for (int block0 = 0; block0 < row_blocks; block0 += plan.phase_blocks) {
      const int blocks = min(plan.phase_blocks, row_blocks - block0);
      const int units = blocks * plan.units;
      const int octets = (units + 7) / 8;
      const int row0 = block0 * kR;
      const int rows = min(blocks * kR, tile_rows - row0);
      for (int group0 = 0; group0 < plan.filter_groups;
           group0 += plan.phase_filter_groups) {
        const int filter_groups =
            min(plan.phase_filter_groups, plan.filter_groups - group0);
        // The stage was read.
        if (block0 + group0 > 0) SyncGroup(1 + group, threads);
        for (int piece = warp; piece < octets * filter_groups;
             piece += plan.warps) {
          const int filter_group = piece / octets;
          const int unit = (piece - filter_group * octets) * 8 + g;
          // Beyond the last unit it is computed again, and not stored.
          const int near = min(unit, units - 1);
          const int block = SplitDivide(near, plan.units_magic);
          const int place = near - block * plan.units;
          uint32_t in = high_address + 4 * ((block0 + block) * kR * plan.pitch +
                                            place * unit_words + t);
          Filters piece_filters(filters +
                                int64_t{group0 + filter_group} *
                                    plan.filter_vectors * kSplitVectorBytes +
                                lane * kSplitVectorBytes);
          float sum[kS][kNT][4] = {};
          if constexpr (kRowPairs) {
            MultiplyRowPairs<kK, kR, kNT>(in, low_offset, pitch, piece_filters,
                                          sum);
          } else {
            const int steps = plan.chunks_per_plane / 2;
#pragma unroll 1
            for (int plane = 0; plane < plan.planes; ++plane) {
#pragma unroll 1
              for (int step = 0; step < steps; ++step) {
                MultiplyStep<kK, kS, kNT, (kThreads > 256)>(
                    plan.K, in, low_offset, pitch, piece_filters, sum);
                in += 32;
                piece_filters.Advance((kK > 0 ? kK : plan.K) * kNT);
              }
              in += 4 * plan.plane_words - 32 * steps;
            }
          }
          if (unit < units) {
            const int column = place * plan.shifts;
            StagePiece<kR, kNT>(
                plan, sum, scale, filter_group * kNT * 8 + 2 * t, column,
                tile_columns, stage + block * kR * tile_columns + column);
          }
        }
        SyncGroup(1 + group, threads);
        const int m0 = group0 * kNT * 8 >> plan.shift_log;
        const int m_end =
            min(plan.M, (group0 + filter_groups) * kNT * 8 >> plan.shift_log);
        float* const to = out + int64_t{m0} * out_area + row0 * plan.W_out;
        if (tile_columns == plan.W_out) {
          StoreWholeRows(stage, plan.stage_pitch, to, out_area, m_end - m0,
                         rows * plan.W_out, warp, plan.warps, lane);
        } else {
          StorePartRows(plan, stage, to, out_area, m_end - m0, rows,
                        tile_columns, warp, lane);
        }
      }
    }
  }
#endif
}

class SplitConvolution : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    if (!MakeSplitPlan(problem_, limits.multiprocessors,
                       limits.shared_per_block, &plan_)) {
      return {"SplitConvolution::Prepare", "no tile fits"};
    }
    RETURN_IF_FAILED(
        AllowAllSharedMemory(reinterpret_cast<const void*>(Function())));
    blocks_ = plan_.tiles() < limits.multiprocessors ? plan_.tiles()
                                                     : limits.multiprocessors;
    return arranged_.Allocate(LayoutOf(plan_));
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    SplitPlan plan = plan_;
    // Pairs of pixels are loaded as such.
    if (plan.plane_channels == 1 && reinterpret_cast<uintptr_t>(x) % 8 != 0) {
      plan.linear = false;
    }
    RETURN_IF_FAILED(arranged_.Arrange(k, stream));
    Function()<<<blocks_, 32 * plan.warps * plan.groups, plan.shared_bytes,
                 stream>>>(x, k, arranged_.data(), arranged_.exponent(), y,
                           plan);
    return CheckLaunch("SplitKernel");
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason = RejectWithoutTensorCores(
            reinterpret_cast<const void*>(FunctionOf<0>()))) {
      return reason;
    }
    if (problem.kernel_size > kSplitMostKernelSize) {
      return "takes filters of at most 11 x 11";
    }
    if (const char* const reason = RejectHugeImages(problem)) return reason;
    DeviceLimits limits;
    // A device that cannot be asked fails in Prepare, with the reason.
    if (AskLimits(&limits).failed()) return nullptr;
    SplitPlan plan;
    return MakeSplitPlan(problem, limits.multiprocessors,
                         limits.shared_per_block, &plan)
               ? nullptr
               : "the channels of the smallest tile do not fit into shared "
                 "memory";
  }

 private:
  using FunctionPointer = void (*)(const float*, const float*, const char*,
                                   const int*, float*, SplitPlan);
  template <int kShape>
  static constexpr FunctionPointer FunctionOf() {
    constexpr SplitShape s = kSplitShapes[kShape];
    return SplitKernel<s.kernel_size, s.rows, s.tiles_n, s.row_pairs,
                       s.filters_shared, s.threads>;
  }
  template <int... kShapes>
  static constexpr auto AllFunctions(std::integer_sequence<int, kShapes...>) {
    struct Table {
      FunctionPointer functions[kSplitShapeCount];
    };
    return Table{{FunctionOf<kShapes>()...}};
  }
  FunctionPointer Function() const {
    static constexpr auto kTable =
        AllFunctions(std::make_integer_sequence<int, kSplitShapeCount>());
    return kTable.functions[plan_.shape];
  }

  SplitPlan plan_ = {};
  ArrangedFilters arranged_;
  int64_t blocks_ = 0;
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_SPLIT_SPLIT_CORE_CUH_
