// What kernels share whose operands on FP16 tensor cores are scaled halves:
// scaling, splitting, and the arrangement of the filters. Needs compute
// capability 8.0.
//
// Range. Filters, and the inputs of a tile, are scaled by powers of two, which
// is exact, so that the largest value comes below the largest half. Tiles with
// infinities or NaN, or whose results need a power of two beyond float's range,
// are computed from the floats by the definition.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_HALVES_CUH_
#define KERNELS_CONVOLUTION_CUDA_LIB_HALVES_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/filter_layout.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// 2^e for e from -126 to 127.
__device__ __forceinline__ float PowerOfTwo(int e) {
  return __int_as_float((e + 127) << 23);
}

__device__ __forceinline__ uint32_t Magnitude(float v) {
  return __float_as_uint(v) & 0x7fffffff;
}

// For the bits of a largest magnitude: whether it is infinite or NaN.
__device__ __forceinline__ bool IsFinite(uint32_t most) {
  return most < 0x7f800000;
}

// The exponent of the power of two by which inputs up to `most` are scaled. It
// changes only every 15 powers, so that the tiles of a tensor mostly share it:
// the largest scaled value is 1 to 2^15, and inputs up to between 1/32 and 1023
// are multiplied by 32. The rounding error of a scaled value is at most 2^-25
// of the largest.
__device__ __forceinline__ int InputExponent(uint32_t most) {
  const int power = static_cast<int>(most >> 23) - 127;
  return min(5 - 15 * ((power + 5 + 150) / 15 - 10), 127);
}

// The same for filters. Their largest scaled value is 2^14 to 2^15.
__device__ __forceinline__ int FilterExponent(uint32_t most) {
  const int power = static_cast<int>(most >> 23) - 127;
  return most == 0 ? 0 : min(14 - power, 127);
}
// In place of an exponent: there are infinities or NaN, or results need a power
// of two beyond float's range.
constexpr int kNotScalable = 1 << 20;

// Splits a and b into halves and the rest of each, as halves too.
__device__ __forceinline__ void Split(float a, float b, uint32_t& high,
                                      uint32_t& low) {
  const __half2 h = __floats2half2_rn(a, b);
  const float2 back = __half22float2(h);
  const __half2 l = __floats2half2_rn(a - back.x, b - back.y);
  high = reinterpret_cast<const uint32_t&>(h);
  low = reinterpret_cast<const uint32_t&>(l);
}

// The largest magnitude among v[first], v[first + step] and so on below
// `count`. A thread has eight loads under way: with a branch behind each of
// them, each would take the whole latency of memory.
__device__ __forceinline__ uint32_t LargestOfThread(const float* v,
                                                    uint32_t first,
                                                    uint32_t step,
                                                    uint32_t count) {
  constexpr int kLoads = 8;
  uint32_t most = 0;
#pragma unroll 1
  for (uint32_t i = first; i < count; i += kLoads * step) {
    float loaded[kLoads];
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      loaded[j] = LoadIfBelow(j * step, count - i, v + i + j * step);
    }
#pragma unroll
    for (const float value : loaded) most = max(most, Magnitude(value));
  }
  return most;
}

// The largest magnitude of `count` floats. All threads of the block call this
// together, and once only.
__device__ __forceinline__ uint32_t LargestOfBlock(const float* v, int count) {
  __shared__ uint32_t largest;
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  const uint32_t most = __reduce_max_sync(
      0xffffffff, LargestOfThread(v, threadIdx.x, blockDim.x, count));
  if (threadIdx.x % 32 == 0) atomicMax(&largest, most);
  __syncthreads();
  return largest;
}

// The factor for filters whose largest magnitude is `most`, or 0 if some are
// not finite. One thread of the grid stores its exponent, or kNotScalable, to
// *exponent_out.
__device__ __forceinline__ float FilterScale(uint32_t most, int* exponent_out) {
  const int exponent = IsFinite(most) ? FilterExponent(most) : kNotScalable;
  if (threadIdx.x == 0 && blockIdx.x == 0) *exponent_out = exponent;
  return IsFinite(most) ? PowerOfTwo(exponent) : 0;
}

// One output by the definition, for plans that hold the problem's sizes: `in`
// is the first input under the filter `k`.
template <typename Plan>
__device__ __forceinline__ float ExactOutput(const Plan& plan, const float* in,
                                             const float* k) {
  float sum = 0;
#pragma unroll 1
  for (int c = 0; c < plan.C; ++c) {
#pragma unroll 1
    for (int p = 0; p < plan.K; ++p) {
#pragma unroll 1
      for (int q = 0; q < plan.K; ++q) {
        sum += in[(int64_t{c} * plan.H + p) * plan.W + q] *
               k[(c * plan.K + p) * plan.K + q];
      }
    }
  }
  return sum;
}

// Computes the outputs of filters `first` to `end` - 1 in a tile by the
// definition: `image` is the tile's first input, `out` its first output.
template <typename Plan>
__device__ __forceinline__ void ComputeExactly(const Plan& plan,
                                               const float* image,
                                               const float* k, float* out,
                                               int rows, int columns, int first,
                                               int end, int tid, int threads) {
  const int64_t weights = int64_t{plan.C} * plan.K * plan.K;
  for (int m = first; m < end; ++m) {
    for (int e = tid; e < rows * columns; e += threads) {
      const int h = e / columns, w = e % columns;
      out[(int64_t{m} * plan.H_out + h) * plan.W_out + w] =
          ExactOutput(plan, image + int64_t{h} * plan.W + w, k + m * weights);
    }
  }
}

#endif

// Raises *most_out, which is 0 at first, to the largest magnitude of the
// filters.
static __global__ void FilterMaxKernel(const float* k, int count,
                                       uint32_t* most_out) {
#if __CUDA_ARCH__ >= 800
  const uint32_t most = __reduce_max_sync(
      0xffffffff, LargestOfThread(k, blockIdx.x * blockDim.x + threadIdx.x,
                                  gridDim.x * blockDim.x, count));
  if (threadIdx.x % 32 == 0) atomicMax(most_out, most);
#endif
}

// Scales the filters, splits them and stores them in the lanes' order:
// arranged[filter group][step][filter row, or pair][tile][lane]. A block
// arranges one filter, those beyond M as zeros. It finds the largest magnitude
// itself unless layout.max_apart, when *most_in holds it. *exponent_out becomes
// the exponent of the scale, or kNotScalable.
static __global__ void ArrangeFiltersKernel(
    const float* k, const uint32_t* most_in, char* arranged, int* exponent_out,
    const __grid_constant__ FilterLayout layout) {
#if __CUDA_ARCH__ >= 800
  LetNextKernelStart();
  const int m = blockIdx.x;
  uint32_t most = 0;
  if (layout.max_apart) {
    most = *most_in;
  } else {
    most = LargestOfBlock(k, layout.M * layout.C * layout.K * layout.K);
  }
  const float scale = FilterScale(most, exponent_out);
  const int rows = layout.rows;
  const int steps = layout.row_pairs ? layout.chunks : layout.chunks / 2;
  for (int i = threadIdx.x; i < layout.shifts * steps * rows * 4;
       i += blockDim.x) {
    const int t = i % 4;
    const int row = i / 4 % rows;
    const int step = i / 4 / rows % steps;
    const int shift = i / 4 / rows / steps;
    float v[4];  // two halves of each of the lane's two words
    for (int j = 0; j < 4; ++j) {
      const int chunk = layout.row_pairs ? step : 2 * step + j / 2;
      const int p = layout.row_pairs ? 2 * row + j / 2 : row;
      const int half = chunk % layout.chunks_per_plane * 8 + 2 * t + j % 2;
      const int c = chunk / layout.chunks_per_plane * layout.plane_channels +
                    half % layout.plane_channels;
      const int q = half / layout.plane_channels - shift;
      const bool exists = m < layout.M && c < layout.C && p < layout.K &&
                          q >= 0 && q < layout.K;
      v[j] =
          scale *
          LoadIfBelow(
              0, exists,
              k + ((int64_t{m} * layout.C + c) * layout.K + p) * layout.K + q);
    }
    uint4 words;
    Split(v[0], v[1], words.x, words.z);
    Split(v[2], v[3], words.y, words.w);
    const int64_t n = int64_t{m} * layout.shifts + shift;
    const int64_t vector =
        n / 8 / layout.tiles_n * layout.filter_vectors +
        ((step * rows + row) * layout.tiles_n + n / 8 % layout.tiles_n) * 32 +
        n % 8 * 4 + t;
    reinterpret_cast<uint4*>(arranged)[vector] = words;
  }
#endif
}

// The filters in the order of a product's kernel, behind their exponent and
// their largest magnitude.
class ArrangedFilters {
 public:
  Error Allocate(const FilterLayout& layout) {
    layout_ = layout;
    return memory_.Allocate(kHeaderBytes + int64_t{layout.filter_groups} *
                                               layout.filter_vectors *
                                               kSplitVectorBytes);
  }

  // Queues the arrangement of the filters k.
  Error Arrange(const float* k, cudaStream_t stream) {
    uint32_t* const most = memory_.as<uint32_t>() + 1;
    if (layout_.max_apart) {
      RETURN_IF_CUDA_ERROR(cudaMemsetAsync(most, 0, sizeof(*most), stream));
      const int64_t count =
          int64_t{layout_.M} * layout_.C * layout_.K * layout_.K;
      FilterMaxKernel<<<CeilDivide(count, 1 << 13), 256, 0, stream>>>(k, count,
                                                                      most);
      RETURN_IF_FAILED(CheckLaunch("FilterMaxKernel"));
    }
    const int64_t filters =
        int64_t{layout_.filter_groups} * layout_.tiles_n * 8 / layout_.shifts;
    ArrangeFiltersKernel<<<filters, 256, 0, stream>>>(
        k, most, memory_.as<char>() + kHeaderBytes, memory_.as<int>(), layout_);
    return CheckLaunch("ArrangeFiltersKernel");
  }

  // On the device: the exponent, or kNotScalable, and the vectors.
  const int* exponent() const { return memory_.as<int>(); }
  const char* data() const { return memory_.as<char>() + kHeaderBytes; }

 private:
  static constexpr int kHeaderBytes = 256;

  FilterLayout layout_ = {};
  Workspace memory_;
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_HALVES_CUH_
