// What kernels share whose operands on FP16 tensor cores are scaled halves:
// scaling, splitting, the arrangement of the filters, and the outputs that are
// computed from the floats. Needs compute capability 8.0.
//
// Range. Each filter, and the inputs of each tile, are scaled by powers of two,
// which is exact, so that the largest value comes below the largest half
// (scaling.h). Outputs whose inputs or weights lost more than float32 would,
// or that need a power of two beyond float's range, and tiles with infinities
// or NaN, are computed by the definition.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_HALVES_CUH_
#define KERNELS_CONVOLUTION_CUDA_LIB_HALVES_CUH_

#include <cuda_fp16.h>

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/filter_layout.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/scaling.h"

namespace convlab::cuda {

// What is known of a filter once it is arranged.
struct ScaledFilter {
  int exponent;  // of its scale, or kNotScalable
  // LeastCertainSum: where no input is lossy, and where inputs may be.
  float certain[2];
};

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

// The largest of some magnitudes and the least that is not zero, as their bits
// without the sign: shifted to the left by one. The least is kept less one, so
// that zero comes to stand above all others.
struct Extent {
  uint32_t most = 0, least = 0xffffffff;

  __device__ __forceinline__ void AddLeast(float v) {
    least = __viaddmin_u32(2 * __float_as_uint(v), 0xffffffff, least);
  }
  __device__ __forceinline__ void Add(float v) {
    most = max(most, 2 * __float_as_uint(v));
    AddLeast(v);
  }
  // Of all lanes of a warp.
  __device__ __forceinline__ Extent OfWarp() const {
    Extent all;
    all.most = __reduce_max_sync(0xffffffff, most);
    all.least = __reduce_min_sync(0xffffffff, least);
    return all;
  }
  // The bits of the largest magnitude.
  __device__ __forceinline__ uint32_t Most() const { return most / 2; }
  // Whether inputs scaled by 2^exponent are lossy.
  __device__ __forceinline__ bool Lossy(int exponent) const {
    return least < 2 * LeastKept(exponent) - 1;
  }
};

// Splits a and b into halves and the rest of each, as halves too.
__device__ __forceinline__ void Split(float a, float b, uint32_t& high,
                                      uint32_t& low) {
  const __half2 h = __floats2half2_rn(a, b);
  const float2 back = __half22float2(h);
  const __half2 l = __floats2half2_rn(a - back.x, b - back.y);
  high = reinterpret_cast<const uint32_t&>(h);
  low = reinterpret_cast<const uint32_t&>(l);
}

// Whether the halves of a scaled weight lose more than 2^-23 of it.
__device__ __forceinline__ bool IsLossy(float v) {
  const float rest = v - __half2float(__float2half_rn(v));
  const float lost = rest - __half2float(__float2half_rn(rest));
  return fabsf(lost) > fabsf(v) * 0x1p-23f;
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

// Chooses the scale of a filter, of which this is the block, and stores what is
// known of it to *filter: `weights` weights from k on, or none for a column
// without a filter. Returns the factor, 0 if some weight is not finite. All
// threads of the block call this together, and once only.
__device__ __forceinline__ float ScaleFilter(const float* k, int weights,
                                             ScaledFilter* filter) {
  __shared__ uint32_t largest;
  __shared__ int lossy;
  if (threadIdx.x == 0) largest = 0, lossy = 0;
  __syncthreads();
  uint32_t most = __reduce_max_sync(
      0xffffffff, LargestOfThread(k, threadIdx.x, blockDim.x, weights));
  if (threadIdx.x % 32 == 0) atomicMax(&largest, most);
  __syncthreads();
  most = largest;
  const int exponent = FilterExponent(most);
  const float scale = IsFinite(most) ? PowerOfTwo(exponent) : 0;
  int count = 0;
  for (int i = threadIdx.x; i < weights; i += blockDim.x) {
    count += IsLossy(k[i] * scale);
  }
  count = __reduce_add_sync(0xffffffff, count);
  if (threadIdx.x % 32 == 0) atomicAdd(&lossy, count);
  __syncthreads();
  if (threadIdx.x == 0) {
    filter->exponent = IsFinite(most) ? exponent : kNotScalable;
    filter->certain[0] = LeastCertainSum(lossy);
    filter->certain[1] = LeastCertainSum(lossy + weights);
  }
  return scale;
}

// The factor that takes back the scales of inputs and filter, if CanScaleBack.
__device__ __forceinline__ float ScaleBack(int exponent, int filter_exponent) {
  return __int_as_float((127 - exponent - filter_exponent) << 23);
}

// A tile's outputs that are certain, if its inputs were scaled by 2^exponent.
struct Certain {
  int exponent;  // or kNotScalable
  bool lossy;    // whether some inputs are

  // The least certain magnitude of a filter's outputs: 0 if all are certain,
  // infinity if none is.
  __device__ __forceinline__ float Least(const ScaledFilter& filter) const {
    if (!CanScaleBack(exponent, filter.exponent)) return INFINITY;
    const float sum = filter.certain[lossy];
    return sum == 0 ? 0
                    : fmaxf(sum * ScaleBack(exponent, filter.exponent),
                            FLT_TRUE_MIN);
  }
};

// Whether an output is certain, if from magnitude `least` on they all are.
__device__ __forceinline__ bool IsCertain(float output, float least) {
  return least < INFINITY && fabsf(output) >= least;
}

// The exponents of inputs, none of them lossy, with which all outputs of all
// filters are certain.
struct CertainExponents {
  int least, most;

  // All lanes of a warp call this.
  static __device__ __forceinline__ CertainExponents
  Of(const ScaledFilter* filters, int count) {
    int low = -127, high = 127;
    for (int m = threadIdx.x % 32; m < count; m += 32) {
      low = max(low, -127 - filters[m].exponent);
      high = min(high,
                 filters[m].certain[0] > 0 ? -128 : 126 - filters[m].exponent);
    }
    return {__reduce_max_sync(0xffffffff, low),
            __reduce_min_sync(0xffffffff, high)};
  }
  // Whether some outputs of a tile may not be certain.
  __device__ __forceinline__ bool Doubt(const Certain& tile) const {
    return tile.lossy || tile.exponent < least || tile.exponent > most;
  }
};

// For code that is rarely reached: v, from which the compiler computes nothing
// before it gets there. It would keep the results in registers meanwhile, which
// products need.
__device__ __forceinline__ int Late(int v) {
  asm volatile("" : "+r"(v));
  return v;
}
__device__ __forceinline__ int64_t Late(int64_t v) {
  asm volatile("" : "+l"(v));
  return v;
}
__device__ __forceinline__ int LateLane() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// One output by the definition, for plans that hold the problem's sizes: `in`
// is the first input under the filter `k`. The lanes of a warp, which all call
// this, share the terms.
template <typename Plan>
__device__ __forceinline__ float ExactOutput(const Plan& plan, const float* in,
                                             const float* k) {
  const int K = Late(plan.K), H = Late(plan.H), W = Late(plan.W);
  const int taps = K * K, terms = Late(plan.C) * taps;
  float sum = 0;
#pragma unroll 1
  for (int i = LateLane(); i < terms; i += 32) {
    const int c = i / taps, tap = i - c * taps;
    const int p = tap / K, q = tap - p * K;
    sum += in[(int64_t{c} * H + p) * W + q] * k[i];
  }
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffff, sum, distance);
  }
  return sum;
}

// Calls compute(e) in all lanes of a warp for every e from `first` below `end`
// and `step` apart for which some lane's uncertain(e + lane) holds: e is then
// that lane's. All lanes call this with the same arguments. `kAtOnce` of
// a lane are looked at at once: more take registers, fewer wait for memory.
template <int kAtOnce = 1, typename Uncertain, typename Compute>
__device__ __forceinline__ void ForUncertain(int first, int end, int step,
                                             const Uncertain& uncertain,
                                             const Compute& compute) {
  const int lane = LateLane();
#pragma unroll 1
  for (int e = Late(first); e < end; e += kAtOnce * step) {
    uint32_t found = 0;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int own = e + i * step + lane;
      found |= (uncertain(min(own, end - 1)) && own < end) << i;
    }
    if (!__any_sync(0xffffffff, found)) continue;
#pragma unroll 1
    for (int i = 0; i < kAtOnce; ++i) {
      uint32_t left = __ballot_sync(0xffffffff, found >> i & 1);
#pragma unroll 1
      for (; left != 0; left &= left - 1) {
        compute(e + i * step + __ffs(left) - 1);
      }
    }
  }
}

// Computes by the definition those outputs of filters `first` to `end` - 1 in a
// tile that are not certain. `image` is the tile's first input, and at(m, h, w)
// points to an output, which was computed. Whole warps call this, `tid` being a
// thread's place among them.
template <typename Plan, typename At>
__device__ __forceinline__ void ComputeUncertain(
    const Plan& plan, const ScaledFilter* filters, const Certain& certain,
    const float* image, const float* k, int rows, int columns, int first,
    int end, int tid, int threads, const At& at) {
  const int64_t weights = int64_t{plan.C} * plan.K * plan.K;
#pragma unroll 1
  for (int m = first; m < end; ++m) {
    const float least = certain.Least(filters[m]);
    if (least == 0) continue;
    ForUncertain(
        tid & ~31, rows * columns, threads,
        [&](int e) {
          return !IsCertain(*at(m, e / columns, e % columns), least);
        },
        [&](int e) {
          const int h = e / columns, w = e % columns;
          const float y = ExactOutput(plan, image + int64_t{h} * plan.W + w,
                                      k + m * weights);
          if (threadIdx.x % 32 == 0) *at(m, h, w) = y;
        });
  }
}

#endif

// Scales the filters, splits them and stores them in the lanes' order:
// arranged[filter group][step][filter row, or pair][tile][lane]. A block
// arranges one filter, those beyond M as zeros.
static __global__ void ArrangeFiltersKernel(
    const float* k, char* arranged, ScaledFilter* filters,
    const __grid_constant__ FilterLayout layout) {
#if __CUDA_ARCH__ >= 800
  LetNextKernelStart();
  const int m = blockIdx.x;
  const int weights = m < layout.M ? layout.C * layout.K * layout.K : 0;
  const float scale =
      ScaleFilter(k + int64_t{m} * weights, weights, filters + m);
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

// The filters in the order of a product's kernel, behind what is known of each.
class ArrangedFilters {
 public:
  // For `filters` filters, which fill the groups, and so many bytes.
  Error Allocate(int64_t filters, int64_t bytes) {
    header_bytes_ = RoundUp(filters * sizeof(ScaledFilter), 256);
    return memory_.Allocate(header_bytes_ + bytes);
  }
  // On the device.
  ScaledFilter* filters() const { return memory_.as<ScaledFilter>(); }
  char* data() const { return memory_.as<char>() + header_bytes_; }

 private:
  int64_t header_bytes_ = 0;
  Workspace memory_;
};

// As ArrangeFiltersKernel arranges them.
class LaneFilters : public ArrangedFilters {
 public:
  Error Allocate(const FilterLayout& layout) {
    layout_ = layout;
    return ArrangedFilters::Allocate(
        layout.filters(), int64_t{layout.filter_groups} *
                              layout.filter_vectors * kSplitVectorBytes);
  }
  // Queues the arrangement of the filters k.
  Error Arrange(const float* k, cudaStream_t stream) {
    ArrangeFiltersKernel<<<layout_.filters(), 256, 0, stream>>>(
        k, data(), filters(), layout_);
    return CheckLaunch("ArrangeFiltersKernel");
  }

 private:
  FilterLayout layout_ = {};
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_HALVES_CUH_
