// The kernel of half2; half2.cu explains the idea.
//
// As direct_tiled's, but inputs wait in registers to be converted on their way
// to shared memory, which has one buffer. Filters lie there as
// [channel][tap][filter], so that a thread reads pairs of filters. Products are
// summed in half precision over at most kMaxHalfSum taps, and these sums are
// added up in float32.
#ifndef KERNELS_CONVOLUTION_CUDA_DIRECT_HALF2_CUH_
#define KERNELS_CONVOLUTION_CUDA_DIRECT_HALF2_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/direct/direct.cuh"
#include "kernels/convolution/cuda/direct/instances.h"
#include "kernels/convolution/cuda/direct/plan.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/tile_walk.cuh"

namespace convlab::cuda {
namespace {

// Taps of a filter row that are unrolled where K is not known to the compiler.
constexpr int kAnyTaps = 4;
// Taps of the longest sum in half precision.
constexpr int kMaxHalfSum = 28;
// Inputs that a thread loads before it converts them.
constexpr int kLoads = 8;

// kCount halves of shared memory, with loads of eight bytes if kVector is 4.
template <int kCount, int kVector>
__device__ __forceinline__ void LoadHalves(const __half* from, __half* to) {
#pragma unroll
  for (int i = 0; i < kCount; i += kVector) {
    if constexpr (kVector == 4) {
      const uint2 v = *reinterpret_cast<const uint2*>(from + i);
      const __half2 low = reinterpret_cast<const __half2&>(v.x);
      const __half2 high = reinterpret_cast<const __half2&>(v.y);
      to[i] = low.x, to[i + 1] = low.y, to[i + 2] = high.x, to[i + 3] = high.y;
    } else {
      to[i] = from[i];
    }
  }
}

// Pairs of filters from shared memory, four in one load if that many divide
// them, else two or one.
template <int kPairs>
__device__ __forceinline__ void LoadFilters(const __half* from, __half2* to) {
  constexpr int kVector = VectorFloats(kPairs);  // a pair has a float's size
  using Vector = typename FloatVector<kVector>::Type;
#pragma unroll
  for (int i = 0; i < kPairs; i += kVector) {
    const Vector vector = *reinterpret_cast<const Vector*>(from + 2 * i);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      to[i + j] = reinterpret_cast<const __half2*>(&vector)[j];
    }
  }
}

// One thread's part of a block. kK: K, or 0 for any.
template <int kK, int kFilters, int kRows, int kColumns, int kThreads>
class Half2Thread {
 public:
  static constexpr DirectTile Tile() {
    return HalfFilters(KernelSize{kK}, Outputs{kFilters, kRows, kColumns},
                       Threads{kThreads})
        .tile;
  }

  __device__ __forceinline__ Half2Thread(const DirectPlan& plan, __half* shared)
      : place(plan, Tile()),
        plan_(plan),
        K_(kK > 0 ? kK : plan.K),
        inputs_(shared),
        filters_(shared + plan.input_elements),
        first_walk_(plan.steps, plan.W, int64_t{plan.H} * plan.W, plan.pitch,
                    plan.rows * plan.pitch),
        block_filters_(plan.threads_m * kFilters) {}

  const DirectThread place;

  // Copies a chunk's inputs to shared memory.
  __device__ __forceinline__ void CopyInputs(const float* x, int64_t b,
                                             int chunk) const {
    const int c0 = chunk * plan_.channels;
    const int channels = min(plan_.channels, plan_.C - c0);
    const int64_t area = int64_t{plan_.H} * plan_.W;
    const float* const from = x + (b * plan_.C + c0) * area +
                              int64_t{place.tile_h} * plan_.W + place.tile_w;
    const int rows_left = plan_.H - place.tile_h;
    const int columns_left = plan_.W - place.tile_w;
    TileWalk walk = first_walk_;
    while (walk.plane() < channels) {
      float value[kLoads];
      int to[kLoads];
#pragma unroll
      for (int i = 0; i < kLoads; ++i, walk.Advance(plan_.steps)) {
        const bool inside = walk.plane() < channels && walk.row() < rows_left &&
                            walk.column() < columns_left;
        // The walk's own offsets were slower here (docs/journal/half2.md).
        to[i] = inside
                    ? (walk.plane() * plan_.rows + walk.row()) * plan_.pitch +
                          walk.column()
                    : -1;
        if (inside) {
          value[i] = from[walk.plane() * area + int64_t{walk.row()} * plan_.W +
                          walk.column()];
        }
      }
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        if (to[i] >= 0) inputs_[to[i]] = __float2half_rn(value[i]);
      }
    }
  }

  // Copies a chunk's filters to shared memory.
  __device__ __forceinline__ void CopyFilters(const float* k, int chunk) const {
    const int m0 = place.filter - place.m * kFilters;
    const int c0 = chunk * plan_.channels;
    const int taps = min(plan_.channels, plan_.C - c0) * K_ * K_;
    for (int i = threadIdx.x; i < block_filters_ * taps; i += blockDim.x) {
      const int tap = i % taps;
      const int m = i / taps;
      filters_[tap * block_filters_ + m] = __float2half_rn(
          m0 + m < plan_.M ? k[(int64_t{m0 + m} * plan_.C + c0) * K_ * K_ + tap]
                           : 0);
    }
  }

  __device__ __forceinline__ void ClearSums() {
#pragma unroll
    for (int m = 0; m < kFilters; ++m) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < kColumns; ++i) sums[m][r][i] = 0;
      }
    }
  }

  // Adds a chunk's products to half_sums_, and these to sums before they would
  // have more than kMaxHalfSum terms.
  __device__ __forceinline__ void Multiply(int chunk) {
    const __half* filters = filters_ + place.m * kFilters;
    const __half* const inputs =
        inputs_ + place.y * plan_.pitch + place.x * kColumns;
    const int channels = min(plan_.channels, plan_.C - chunk * plan_.channels);
    for (int c = 0; c < channels; ++c) {
#pragma unroll 1
      for (int p = 0; p < K_; ++p) {
        const __half* const row = inputs + (c * plan_.rows + p) * plan_.pitch;
#pragma unroll 1
        for (int q0 = 0; q0 < K_; q0 += kTaps) {
          if (half_taps_ + kTaps > kMaxHalfSum) AddHalfSums();
          half_taps_ += kTaps;
          MultiplyTaps(row, q0, filters);
        }
      }
    }
  }

  // Adds half_sums_ to sums, and clears them.
  __device__ __forceinline__ void AddHalfSums() {
#pragma unroll
    for (int m = 0; m < kPairs; ++m) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < kColumns; ++i) {
          sums[2 * m][r][i] += __low2float(half_sums_[m][r][i]);
          sums[2 * m + 1][r][i] += __high2float(half_sums_[m][r][i]);
          half_sums_[m][r][i] = __half2();
        }
      }
    }
    half_taps_ = 0;
  }

  float sums[kFilters][kRows][kColumns];

 private:
  static constexpr int kTaps = kK > 0 ? kK : kAnyTaps;  // of a row at a time
  static constexpr int kVector = Tile().vector;
  static constexpr int kInputs = RoundUp(kColumns + kTaps - 1, kVector);
  static constexpr int kPairs = kFilters / 2;

  // Multiplies kTaps taps of a filter row, from q0 on, with the inputs that
  // they need, which are loaded once. Leaves `filters` at the next tap.
  __device__ __forceinline__ void MultiplyTaps(const __half* row, int q0,
                                               const __half*& filters) {
    __half in[kRows][kInputs];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      LoadHalves<kInputs, kVector>(row + r * plan_.threads_y * plan_.pitch + q0,
                                   in[r]);
    }
#pragma unroll
    for (int q = 0; q < kTaps; ++q) {
      if (kK == 0 && q0 + q >= K_) break;
      __half2 filter[kPairs];
      LoadFilters<kPairs>(filters, filter);
      filters += block_filters_;
#pragma unroll
      for (int m = 0; m < kPairs; ++m) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
          for (int i = 0; i < kColumns; ++i) {
            half_sums_[m][r][i] = __hfma2(filter[m], __half2half2(in[r][i + q]),
                                          half_sums_[m][r][i]);
          }
        }
      }
    }
  }

  const DirectPlan& plan_;
  const int K_;
  __half* const inputs_;
  __half* const filters_;
  const TileWalk first_walk_;
  const int block_filters_;
  __half2 half_sums_[kPairs][kRows][kColumns] = {};
  int half_taps_ = 0;  // that half_sums_ hold
};

template <int kK, int kFilters, int kRows, int kColumns, int kThreads>
__global__ void __launch_bounds__(kThreads, kFilters < 8 ? 4 : 3)
    Half2Kernel(const float* x, const float* k, float* y,
                const DirectPlan plan) {
  extern __shared__ __align__(16) __half shared[];
  using Thread = Half2Thread<kK, kFilters, kRows, kColumns, kThreads>;
  Thread thread(plan, shared);
  if (plan.chunks == 1) thread.CopyFilters(k, 0);
  float* out = thread.place.Output(plan, Thread::Tile(), y);
  for (int64_t b = thread.place.b; b < plan.batch; b += thread.place.b_step) {
    thread.ClearSums();
    for (int chunk = 0; chunk < plan.chunks; ++chunk) {
      thread.CopyInputs(x, b, chunk);
      if (plan.chunks > 1) thread.CopyFilters(k, chunk);
      __syncthreads();
      thread.Multiply(chunk);
      __syncthreads();
    }
    thread.AddHalfSums();
    StoreTile(plan, thread.place, out, thread.sums);
    out += thread.place.b_step * plan.M * plan.H_out * plan.W_out;
  }
}

}  // namespace
}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_DIRECT_HALF2_CUH_
