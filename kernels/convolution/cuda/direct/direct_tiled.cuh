// The kernel of direct_tiled; direct_tiled.cu explains the idea.
//
// Steps. A block computes one tile of every image that it meets, one chunk of
// channels after another. Each pair of image and chunk is a step. Inputs have
// two buffers: while the block computes one step, the copies of the next step's
// inputs (cp.async) are under way to the other. Filters lie
//   - in shared memory as [channel][tap][filter], so that a thread's filters
//     are one vector; copied once if there is one chunk, and otherwise with
//     each step, to two buffers as well; or
//   - in constant memory as [group of filters][tap][filter]. Then there is one
//     chunk, and a thread computes all groups of its positions one after
//     another.
#ifndef KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_TILED_CUH_
#define KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_TILED_CUH_

#include <cuda_pipeline_primitives.h>

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

__constant__ float constant_filters[kConstantFloats];

// Arranges the filters for constant memory: [group of `filters`][tap][filter].
__global__ void ArrangeConstantFiltersKernel(const float* k, float* arranged,
                                             int M, int taps, int filters,
                                             int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int m = i / (filters * taps) * filters + i % filters;
  arranged[i] = m < M ? k[m * taps + i / filters % taps] : 0;
}

// kCount floats of shared memory, and what is needed to fill the last vector.
template <int kCount, int kFloats>
__device__ __forceinline__ void LoadVectors(const float* from, float* to) {
  using Vector = typename FloatVector<kFloats>::Type;
#pragma unroll
  for (int i = 0; i < kCount; i += kFloats) {
    const Vector vector = *reinterpret_cast<const Vector*>(from + i);
#pragma unroll
    for (int j = 0; j < kFloats; ++j) {
      to[i + j] = reinterpret_cast<const float*>(&vector)[j];
    }
  }
}

// Starts the copy of a tile's inputs to shared memory. `from` is the first.
template <int kFloats>
__device__ __forceinline__ void CopyVectors(const DirectPlan& plan,
                                            TileWalk walk, const float* from,
                                            int channels, int rows_left,
                                            int columns_left, float* to) {
  for (; walk.plane() < channels; walk.Advance(plan.steps)) {
    if (walk.row() < rows_left && walk.column() * kFloats < columns_left) {
      __pipeline_memcpy_async(to + walk.to(), from + walk.from(), 4 * kFloats);
    }
  }
}

// One thread's part of a block. kK: K, or 0 for any.
template <int kK, int kFilters, int kRows, int kColumns, int kThreads,
          bool kConstant>
class DirectTiledThread {
 public:
  static constexpr DirectTile Tile() {
    return (kConstant ? ConstantFilters : SharedFilters)(
               KernelSize{kK}, Outputs{kFilters, kRows, kColumns},
               Threads{kThreads}, Rate{0})
        .tile;
  }
  using Sums = float[kFilters][kRows][kColumns];

  __device__ __forceinline__ DirectTiledThread(const DirectPlan& plan,
                                               float* shared)
      : place(plan, Tile()),
        plan_(plan),
        K_(kK > 0 ? kK : plan.K),
        block_filters_(plan.threads_m * kFilters),
        inputs_(shared),
        filters_(shared + 2 * plan.input_elements),
        first_walk_(Walk()) {}

  DirectThread place;

  // Starts the copies of a chunk's inputs.
  __device__ __forceinline__ void CopyInputs(const float* x, int64_t b,
                                             int chunk, int buffer) const {
    // Found once where there are registers to keep it in.
    const TileWalk walk = kConstant ? first_walk_ : Walk();
    const int c0 = chunk * plan_.channels;
    const int channels = min(plan_.channels, plan_.C - c0);
    const float* const from =
        x + ((b * plan_.C + c0) * plan_.H + place.tile_h) * plan_.W +
        place.tile_w;
    float* const to = inputs_ + buffer * plan_.input_elements;
    const int rows = plan_.H - place.tile_h;
    const int columns = plan_.W - place.tile_w;
    if (plan_.steps.floats == 4) {
      CopyVectors<4>(plan_, walk, from, channels, rows, columns, to);
    } else if (plan_.steps.floats == 2) {
      CopyVectors<2>(plan_, walk, from, channels, rows, columns, to);
    } else {
      CopyVectors<1>(plan_, walk, from, channels, rows, columns, to);
    }
  }

  // Starts the copies of a chunk's filters to shared memory.
  __device__ __forceinline__ void CopyFilters(const float* k, int chunk,
                                              int buffer) const {
    const int m0 = place.filter - place.m * kFilters;
    const int c0 = chunk * plan_.channels;
    const int taps = min(plan_.channels, plan_.C - c0) * K_ * K_;
    float* const to = filters_ + buffer * plan_.filter_elements;
    for (int i = threadIdx.x; i < block_filters_ * taps; i += blockDim.x) {
      const int tap = i % taps;
      const int m = i / taps;
      float* const element = to + tap * block_filters_ + m;
      if (m0 + m < plan_.M) {
        __pipeline_memcpy_async(
            element, k + (int64_t{m0 + m} * plan_.C + c0) * K_ * K_ + tap, 4);
      } else {
        *element = 0;
      }
    }
  }

  static __device__ __forceinline__ void Clear(Sums& sums) {
#pragma unroll
    for (int m = 0; m < kFilters; ++m) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < kColumns; ++i) sums[m][r][i] = 0;
      }
    }
  }

  // Adds a chunk's products to the sums. `group` counts the filters in constant
  // memory.
  __device__ __forceinline__ void Multiply(int chunk, int buffer, int group,
                                           Sums& sums) const {
    const float* filters =
        filters_ + (plan_.chunks > 1 ? buffer * plan_.filter_elements : 0) +
        place.m * kFilters;
    int constant = group * plan_.C * K_ * K_ * kFilters;
    const float* const inputs = inputs_ + buffer * plan_.input_elements +
                                place.y * plan_.pitch + place.x * kColumns;
    const int channels = min(plan_.channels, plan_.C - chunk * plan_.channels);
#pragma unroll 1
    for (int c = 0; c < channels; ++c) {
#pragma unroll kUnrolledRows
      for (int p = 0; p < K_; ++p) {
        const float* const row = inputs + (c * plan_.rows + p) * plan_.pitch;
#pragma unroll 1
        for (int q0 = 0; q0 < K_; q0 += kTaps) {
          MultiplyTaps(row, q0, constant + p * K_ * kFilters, filters, sums);
        }
      }
      constant += K_ * K_ * kFilters;
    }
  }

 private:
  static constexpr int kTaps = kK > 0 ? kK : kAnyTaps;  // of a row at a time
  static constexpr int kVector = Tile().vector;
  static constexpr int kInputs = RoundUp(kColumns + kTaps - 1, kVector);
  // Constant weights are addressed by the unrolled tap.
  static constexpr int kUnrolledRows = kConstant ? kK : 1;

  __device__ __forceinline__ TileWalk Walk() const {
    return TileWalk(plan_.steps, plan_.W, int64_t{plan_.H} * plan_.W,
                    plan_.pitch, plan_.rows * plan_.pitch);
  }

  // Multiplies kTaps taps of a filter row, from q0 on, with the inputs that
  // they need, which are loaded once. Leaves `filters` at the next tap.
  __device__ __forceinline__ void MultiplyTaps(const float* row, int q0,
                                               int constant,
                                               const float*& filters,
                                               Sums& sums) const {
    float in[kRows][kInputs];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      LoadVectors<kInputs, kVector>(
          row + r * plan_.threads_y * plan_.pitch + q0, in[r]);
    }
#pragma unroll
    for (int q = 0; q < kTaps; ++q) {
      if (kK == 0 && q0 + q >= K_) break;
      float filter[kFilters];
      if constexpr (kConstant) {
#pragma unroll
        for (int m = 0; m < kFilters; ++m) {
          filter[m] = constant_filters[constant + q * kFilters + m];
        }
      } else {
        LoadVectors<kFilters, VectorFloats(kFilters)>(filters, filter);
        filters += block_filters_;
      }
#pragma unroll
      for (int m = 0; m < kFilters; ++m) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
          for (int i = 0; i < kColumns; ++i) {
            sums[m][r][i] += filter[m] * in[r][i + q];
          }
        }
      }
    }
  }

  const DirectPlan& plan_;
  const int K_;
  const int block_filters_;
  float* const inputs_;   // two buffers
  float* const filters_;  // two buffers if there are several chunks
  const TileWalk first_walk_;
};

template <int kK, int kFilters, int kRows, int kColumns, int kThreads,
          bool kConstant>
__global__ void __launch_bounds__(kThreads,
                                  ResidentThreads(kFilters* kRows* kColumns) /
                                      kThreads)
    DirectTiledKernel(const float* x, const float* k, float* y,
                      const DirectPlan plan) {
  extern __shared__ __align__(16) float shared[];
  using Thread =
      DirectTiledThread<kK, kFilters, kRows, kColumns, kThreads, kConstant>;
  Thread thread(plan, shared);
  typename Thread::Sums sums;

  thread.CopyInputs(x, thread.place.b, 0, 0);
  if constexpr (!kConstant) thread.CopyFilters(k, 0, 0);
  __pipeline_commit();
  float* out = thread.place.Output(plan, Thread::Tile(), y);
  int buffer = 0;
  for (int64_t b = thread.place.b; b < plan.batch; b += thread.place.b_step) {
    if constexpr (!kConstant) Thread::Clear(sums);
    for (int chunk = 0; chunk < plan.chunks; ++chunk) {
      const bool last_chunk = chunk + 1 == plan.chunks;
      const int64_t next_b = last_chunk ? b + thread.place.b_step : b;
      const int next_chunk = last_chunk ? 0 : chunk + 1;
      if (next_b < plan.batch) {
        thread.CopyInputs(x, next_b, next_chunk, 1 - buffer);
        if constexpr (!kConstant) {
          if (plan.chunks > 1) thread.CopyFilters(k, next_chunk, 1 - buffer);
        }
      }
      __pipeline_commit();
      __pipeline_wait_prior(1);
      __syncthreads();
      if constexpr (kConstant) {
        // There is one chunk only, so a group's sums are complete.
        float* group_out = out;
        const int filters_left = thread.place.filters_left;
#pragma unroll 1
        for (int m = 0, group = 0; m < plan.M; m += kFilters, ++group) {
          Thread::Clear(sums);
          thread.Multiply(chunk, buffer, group, sums);
          StoreTile(plan, thread.place, group_out, sums);
          group_out += int64_t{kFilters} * plan.H_out * plan.W_out;
          thread.place.filters_left -= kFilters;
        }
        thread.place.filters_left = filters_left;
      } else {
        thread.Multiply(chunk, buffer, 0, sums);
        if (last_chunk) StoreTile(plan, thread.place, out, sums);
      }
      // The step after the next copies to this step's buffer.
      __syncthreads();
      buffer = 1 - buffer;
    }
    out += thread.place.b_step * plan.M * plan.H_out * plan.W_out;
  }
}

}  // namespace
}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_TILED_CUH_
