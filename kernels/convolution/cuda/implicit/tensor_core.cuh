// The convolution on tensor cores, as an implicit matrix product: what
// tensor_tf32 and tensor_fp16 share. Needs compute capability 8.0.
//
// The product. Rows are output positions, columns are filters, and the depth
// runs over the taps. One mma.sync multiplies 16 positions x 8 words of taps by
// 8 words x 8 filters; a word is one TF32 value or two FP16 values, and apart
// from that both types lie in the lanes' registers in the same way. With lane =
// 4 * g + t:
//   a[0] position g,     word t        a[2] position g,     word t + 4
//   a[1] position g + 8, word t        a[3] position g + 8, word t + 4
//   b[0] word t, filter g              b[1] word t + 4, filter g
//   c[0], c[1] position g, filters 2 * t and 2 * t + 1; c[2], c[3] of g + 8
//
// No gathering. A block keeps a tile of one image in shared memory as words
// [plane][row][column]. The word of a tap for a position lies at an offset of
// the position plus an offset of the tap, so that a's registers are loaded
// from the image itself, and a table holds the taps' offsets. The order of the
// taps is free: planes run fastest, and their distance is padded so that the
// four words t of a load, each for eight neighbouring positions, fall on
// different banks.
//
// FP16 pairs. A plane holds two channels, the word of a pixel its values in
// both; or, where that pads less (one channel above all), one channel, and the
// word of a pixel its value and its right neighbour's, so that a tap's word
// serves two taps.
//
// Filters are brought into the lanes' order by a small kernel of their own, so
// that b is one 8-byte load. A block keeps its filters in shared memory and
// computes the same tile of one image after another.
#ifndef KERNELS_CONVOLUTION_CUDA_IMPLICIT_TENSOR_CORE_CUH_
#define KERNELS_CONVOLUTION_CUDA_IMPLICIT_TENSOR_CORE_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/implicit/plan.h"
#include "kernels/convolution/cuda/lib/tile_walk.cuh"

namespace convlab::cuda {

// Writes the filters as [chunk][block of filters][step][tile of 8
// filters][lane][2] words; zeros where there is no filter or no tap.
template <typename Words>
__global__ void ArrangeTensorCoreFiltersKernel(const float* k,
                                               uint32_t* arranged,
                                               const ImplicitPlan plan,
                                               int tiles_n, int64_t words) {
  const int64_t index = int64_t{blockIdx.x} * kImplicitThreads + threadIdx.x;
  if (index >= words) return;
  const int lane = index / 2 % 32;
  const int64_t tile = index / 64;
  const int64_t step = tile / tiles_n;
  const int64_t block = step / plan.steps;
  const int chunk = block / plan.filter_blocks;
  const int m =
      (block % plan.filter_blocks * tiles_n + tile % tiles_n) * 8 + lane / 4;
  const int t =
      step % plan.steps * kImplicitStepWords + lane % 4 + index % 2 * 4;
  float value[2] = {0, 0};
  if (t < plan.taps() && m < plan.M) {
    const ImplicitTap tap(plan, t);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int c = (chunk * plan.planes + tap.plane) * plan.plane_channels +
                    i * (plan.plane_channels - 1);
      const int q = tap.q + i * (plan.word_columns - 1);
      if (c < plan.C && q < plan.K) {
        value[i] = k[((int64_t{m} * plan.C + c) * plan.K + tap.p) * plan.K + q];
      }
    }
  }
  arranged[index] = Words::Pack(value[0], value[1]);
}

// One thread's part of a block. Its warp computes kTilesM tiles of 16 positions
// by kTilesN tiles of 8 filters at a time.
template <typename Words, int kTilesM, int kTilesN>
class TensorCoreThread {
 public:
  static constexpr int kWarpPositions = 16 * kTilesM;
  using Sums = float[kTilesM][kTilesN][4];

  __device__ __forceinline__ TensorCoreThread(const ImplicitPlan& plan,
                                              uint32_t* shared)
      : plan_(plan),
        inputs_(shared),
        filters_(inputs_ + plan.input_words()),
        tap_offsets_(
            reinterpret_cast<int*>(filters_ + plan.filter_words(kTilesN))),
        warp_(threadIdx.x / 32),
        g_(threadIdx.x % 32 / 4),
        t_(threadIdx.x % 4) {
    const int64_t place = blockIdx.x % plan.places();
    filter_block_ = place % plan.filter_blocks;
    const int tile = place / plan.filter_blocks;
    h0_ = tile / plan.tiles_x * plan.rows;
    w0_ = tile % plan.tiles_x * plan.columns;
  }

  // The warp's first position in a turn over the tile.
  __device__ int FirstPosition() const { return warp_ * kWarpPositions; }
  __device__ int tile_positions() const { return plan_.rows * plan_.columns; }

  // Fills the table of the taps' offsets, in bytes. Taps that only fill up the
  // last step read any input; their filters are 0.
  __device__ __forceinline__ void SetTapOffsets() const {
    for (int i = threadIdx.x; i < plan_.steps * kImplicitStepWords;
         i += kImplicitThreads) {
      tap_offsets_[i] =
          i < plan_.taps() ? 4 * ImplicitTap(plan_, i).Offset(plan_) : 0;
    }
  }

  __device__ __forceinline__ void CopyFilters(const uint32_t* arranged,
                                              int chunk) const {
    const int vectors = plan_.filter_words(kTilesN) / 4;
    const uint4* const from =
        reinterpret_cast<const uint4*>(arranged) +
        (int64_t{chunk} * plan_.filter_blocks + filter_block_) * vectors;
    for (int i = threadIdx.x; i < vectors; i += kImplicitThreads) {
      reinterpret_cast<uint4*>(filters_)[i] = from[i];
    }
  }

  // Converts a chunk of the tile's inputs to words in shared memory.
  __device__ __forceinline__ void CopyInputs(const float* x, int64_t b,
                                             int chunk) const {
    const int64_t area = int64_t{plan_.H} * plan_.W;
    const int c0 = chunk * plan_.planes * plan_.plane_channels;
    const float* const from =
        x + (b * plan_.C + c0) * area + int64_t{h0_} * plan_.W + w0_;
    TileWalk walk(plan_.copy, plan_.W, plan_.plane_channels * area, plan_.pitch,
                  plan_.plane_words);
    while (walk.plane() < plan_.planes) {
      float value[kInputLoads][2] = {};
      int to[kInputLoads];
#pragma unroll
      for (int i = 0; i < kInputLoads; ++i, walk.Advance(plan_.copy)) {
        to[i] = walk.plane() < plan_.planes ? walk.to() : -1;
        const int c = c0 + walk.plane() * plan_.plane_channels;
        const int w = w0_ + walk.column();
        if (c < plan_.C && h0_ + walk.row() < plan_.H && w < plan_.W) {
          value[i][0] = from[walk.from()];
          if constexpr (Words::kValues == 2) {
            if (plan_.plane_channels == 2) {
              if (c + 1 < plan_.C) value[i][1] = from[walk.from() + area];
            } else {
              if (w + 1 < plan_.W) value[i][1] = from[walk.from() + 1];
            }
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kInputLoads; ++i) {
        if (to[i] >= 0) inputs_[to[i]] = Words::Pack(value[i][0], value[i][1]);
      }
    }
  }

  // Finds the bytes where the first taps of the lane's positions lie; `first`
  // is the warp's first position.
  __device__ __forceinline__ void Locate(int first,
                                         int (&at)[kTilesM][2]) const {
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int position =
            min(first + 16 * i + 8 * j + g_, tile_positions() - 1);
        const int row = RowOf(position);
        at[i][j] = 4 * (row * (plan_.pitch - plan_.columns) + position);
      }
    }
  }

  // Adds the products of the chunk in shared memory.
  __device__ __forceinline__ void Multiply(const int (&at)[kTilesM][2],
                                           Sums& sums) const {
    const uint2* step_filters =
        reinterpret_cast<const uint2*>(filters_) + threadIdx.x % 32;
#pragma unroll 2
    for (int step = 0; step < plan_.steps; ++step) {
      const int offset0 = tap_offsets_[step * kImplicitStepWords + t_];
      const int offset1 = tap_offsets_[step * kImplicitStepWords + t_ + 4];
      uint2 filter[kTilesN];
#pragma unroll
      for (int n = 0; n < kTilesN; ++n) {
        filter[n] = step_filters[n * 32];
      }
      step_filters += kTilesN * 32;
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
        const uint32_t input[4] = {
            InputAt(at[i][0] + offset0), InputAt(at[i][1] + offset0),
            InputAt(at[i][0] + offset1), InputAt(at[i][1] + offset1)};
#pragma unroll
        for (int n = 0; n < kTilesN; ++n) {
          Words::MultiplyAdd(input, filter[n], sums[i][n]);
        }
      }
    }
  }

  // Stores the sums that are inside the output of image b. One store of a warp
  // writes eight neighbouring positions of four filters.
  __device__ __forceinline__ void Store(int first, const Sums& sums, int64_t b,
                                        float* y) const {
    const int64_t area = int64_t{plan_.H_out} * plan_.W_out;
    int64_t to[kTilesM][2];  // -1: outside
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int position = first + 16 * i + 8 * j + g_;
        const int row = RowOf(position);
        const int h = h0_ + row;
        const int w = w0_ + position - row * plan_.columns;
        const bool inside =
            position < tile_positions() && h < plan_.H_out && w < plan_.W_out;
        to[i][j] = inside ? int64_t{h} * plan_.W_out + w : -1;
      }
    }
    int m = filter_block_ * kTilesN * 8 + 2 * t_;
    float* out = y + (b * plan_.M + m) * area;
#pragma unroll
    for (int n = 0; n < kTilesN; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (m + e < plan_.M) {
#pragma unroll
          for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
              if (to[i][j] >= 0) {
                out[e * area + to[i][j]] = sums[i][n][2 * j + e];
              }
            }
          }
        }
      }
      m += 8;
      out += 8 * area;
    }
  }

 private:
  // Words of inputs that a thread loads before it stores them.
  static constexpr int kInputLoads = 8 / Words::kValues;

  __device__ __forceinline__ uint32_t InputAt(int byte) const {
    return *reinterpret_cast<const uint32_t*>(
        reinterpret_cast<const char*>(inputs_) + byte);
  }
  // Positions follow each other in the order of a tile's rows. The rounded
  // quotient is right for fewer than 2^15 of them. The reciprocal is computed
  // anew to keep no register for it: the loop over steps needs all.
  __device__ __forceinline__ int RowOf(int position) const {
    return static_cast<int>((position + 0.5f) * (1.0f / plan_.columns));
  }

  const ImplicitPlan& plan_;
  uint32_t* const inputs_;
  uint32_t* const filters_;
  int* const tap_offsets_;
  const int warp_, g_, t_;  // lane = 4 * g + t
  int filter_block_;
  int h0_, w0_;  // the tile's first output
};

template <typename Words, int kTilesM, int kTilesN>
__global__ void __launch_bounds__(kImplicitThreads, 2)
    TensorCoreKernel(const float* x, const uint32_t* arranged, float* y,
                     const ImplicitPlan plan) {
  using Thread = TensorCoreThread<Words, kTilesM, kTilesN>;
  extern __shared__ __align__(16) uint32_t shared[];
  const Thread thread(plan, shared);
  thread.SetTapOffsets();
  if (plan.chunks == 1) thread.CopyFilters(arranged, 0);
  for (int64_t b = blockIdx.x / plan.places(); b < plan.batch;
       b += gridDim.x / plan.places()) {
    if (plan.chunks == 1) {
      thread.CopyInputs(x, b, 0);
      __syncthreads();
    }
    // With several chunks, one turn of this loop covers the tile: the sums of
    // all its positions have to live while the chunks come.
    for (int first = thread.FirstPosition();
         first < thread.tile_positions() || plan.chunks > 1;
         first += kImplicitWarps * Thread::kWarpPositions) {
      int at[kTilesM][2];
      thread.Locate(first, at);
      typename Thread::Sums sums = {};
      for (int chunk = 0; chunk < plan.chunks; ++chunk) {
        if (plan.chunks > 1) {
          thread.CopyInputs(x, b, chunk);
          thread.CopyFilters(arranged, chunk);
          __syncthreads();
        }
        thread.Multiply(at, sums);
        if (plan.chunks > 1) __syncthreads();
      }
      thread.Store(first, sums, b, y);
      if (plan.chunks > 1) break;
    }
    __syncthreads();
  }
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_IMPLICIT_TENSOR_CORE_CUH_
