// What a warp of tensor_split multiplies: its item's products (kernel.cuh),
// from the halves of a tile in shared memory and the arranged filters.
#ifndef KERNELS_CONVOLUTION_CUDA_SPLIT_MULTIPLY_CUH_
#define KERNELS_CONVOLUTION_CUDA_SPLIT_MULTIPLY_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/filter_layout.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// A lane's arranged filters: for each tile of the product's columns its two
// words' high halves and their low halves.
template <bool kShared>
class SplitFilters {
 public:
  // `arranged` points to the lane's first vector.
  __device__ explicit SplitFilters(const char* arranged)
      : global_(arranged), shared_(kShared ? SharedAddress(arranged) : 0) {}

  // The words of the tile that is `tile` tiles on; z and w are the low halves.
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

// Moves sums to the item's.
template <int kS, int kNT>
__device__ __forceinline__ void Promote(float (&part)[kS][kNT][4],
                                        float (&sum)[kS][kNT][4]) {
  AddSums(part, sum);
#pragma unroll
  for (auto& tiles : part) {
#pragma unroll
    for (auto& tile : tiles) {
#pragma unroll
      for (float& value : tile) value = 0;
    }
  }
}

// Computes a warp's item with row pairs, one plane of one chunk. `in` is the
// address of the lane's first word of high halves; the low ones follow
// low_offset bytes later, and rows are `pitch` bytes apart. Large products are
// taken out of the tensor cores after two steps, or with `promote_steps` after
// each.
template <int kK, int kR, int kNT, typename Filters>
__device__ __forceinline__ void MultiplyRowPairs(
    bool promote_steps, uint32_t in, uint32_t low_offset, uint32_t pitch,
    const Filters& filters, float (&sum)[kR / 2][kNT][4]) {
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
  float part[kS][kNT][4] = {};
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
      for (int n = 0; n < kNT; ++n) MultiplyAdd(a, f[n].x, f[n].y, part[j][n]);
    }
    if (s % 2 == 1 || s + 1 == kSteps || promote_steps) Promote(part, sum);
  }
}

// The rows of words that a step works on: quad i is the operand of one tile.
template <int kS>
struct SplitWindow {
  uint32_t high[kS][4], low[kS][4];
  uint32_t in, in_low;  // the next row

  // Loads the next row into the bottom of quad i.
  __device__ __forceinline__ void Load(int i, uint32_t pitch) {
    high[i][1] = LoadShared<0>(in), high[i][3] = LoadShared<16>(in);
    in += pitch;
    low[i][1] = LoadShared<0>(in_low), low[i][3] = LoadShared<16>(in_low);
    in_low += pitch;
  }
  // Moves the bottom of quad i to the top first.
  __device__ __forceinline__ void Advance(int i, uint32_t pitch) {
    high[i][0] = high[i][1], high[i][2] = high[i][3];
    low[i][0] = low[i][1], low[i][2] = low[i][3];
    Load(i, pitch);
  }
};

// Adds the products of filter row r of a step, whose filters begin at `tile`,
// to the sums of the large ones and those of the small ones. The operand of
// output rows j and j + kS is quad (r + j) % kS.
template <int kS, int kNT, typename Filters>
__device__ __forceinline__ void MultiplyRow(int r, int tile, uint32_t pitch,
                                            const Filters& filters,
                                            SplitWindow<kS>& window,
                                            float (&part)[kS][kNT][4],
                                            float (&small)[kS][kNT][4]) {
  window.Advance((r + kS - 1) % kS, pitch);
  uint4 f[kNT];
#pragma unroll
  for (int n = 0; n < kNT; ++n) f[n] = filters.All(tile + n);
#pragma unroll
  for (int j = 0; j < kS; ++j) {
#pragma unroll
    for (int n = 0; n < kNT; ++n) {
      MultiplyAdd(window.high[(r + j) % kS], f[n].z, f[n].w, small[j][n]);
    }
  }
#pragma unroll
  for (int j = 0; j < kS; ++j) {
#pragma unroll
    for (int n = 0; n < kNT; ++n) {
      MultiplyAdd(window.low[(r + j) % kS], f[n].x, f[n].y, small[j][n]);
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

// Adds one step of the depth: 16 halves of all filter rows. The small products
// have sums of their own, of all steps, so that they cut nothing off the large
// ones, of which tensor cores add up no more than two rows. Filters of any size
// (kK = 0) are taken in loops of kS rows.
template <int kK, int kS, int kNT, bool kFewRegisters, typename Filters>
__device__ __forceinline__ void MultiplyStep(int K, uint32_t in,
                                             uint32_t low_offset,
                                             uint32_t pitch,
                                             const Filters& filters,
                                             float (&small)[kS][kNT][4],
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
      MultiplyRow(r, r * kNT, pitch, filters, window, part, small);
      if (r % 2 == 1 || r + 1 == kK) Promote(part, sum);
    }
  } else {
    for (int first = 0; first < K; first += kS) {
#pragma unroll
      for (int r = 0; r < kS; ++r) {
        if (first + r >= K) break;
        MultiplyRow(r, (first + r) * kNT, pitch, filters, window, part, small);
        if (r % 2 == 1) Promote(part, sum);
      }
      Promote(part, sum);
    }
  }
}

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_SPLIT_MULTIPLY_CUH_
