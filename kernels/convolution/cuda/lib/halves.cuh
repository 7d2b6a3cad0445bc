// What kernels share whose operands on FP16 tensor cores are scaled halves:
// scaling, splitting, and the arrangement of the filters. Needs compute
// capability 8.0.
//
// Range. Each filter, and the inputs of each tile, are scaled by powers of two,
// which is exact, so that the largest value comes below the largest half
// (scaling.h). A block notes those of its tiles of which some outputs may have
// lost more than float32 would, or which it cannot compute at all; when it is
// done it mends those outputs (mend.cuh).
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_HALVES_CUH_
#define KERNELS_CONVOLUTION_CUDA_LIB_HALVES_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/convolution/cuda/lib/arranging_kernel.h"
#include "kernels/convolution/cuda/lib/filter_layout.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/scaling.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// A block's list of doubtful tiles.
struct DoubtfulTiles {
  int* count;           // in shared memory
  DoubtfulTile* tiles;  // of all blocks, in device memory

  // The blocks' lists are interleaved.
  __device__ __forceinline__ DoubtfulTile& At(int i) const {
    return tiles[int64_t{gridDim.x} * i + blockIdx.x];
  }
  // One thread calls this for a tile.
  __device__ __forceinline__ void Add(const DoubtfulTile& tile) const {
    At(atomicAdd(count, 1)) = tile;
  }
};

#endif

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
  // Whether a value that is not zero is smaller than that.
  __device__ __forceinline__ bool IsBelow(float magnitude) const {
    return least < 2 * __float_as_uint(magnitude) - 1;
  }
  // The bits of the largest magnitude.
  __device__ __forceinline__ uint32_t Most() const { return most / 2; }
  // Whether inputs scaled by 2^exponent may be lossy: `least` is below this.
  static __device__ __forceinline__ uint32_t LeastKeptOf(int exponent) {
    return 2 * LeastKept(exponent) - 1;
  }
  __device__ __forceinline__ bool Lossy(int exponent) const {
    return least < LeastKeptOf(exponent);
  }
};

// What was seen of a tile's values: the largest magnitude, in whichever bits,
// and whether some are lossy.
struct Seen {
  uint32_t most = 0, lossy = 0;

  // By all lanes of a warp.
  __device__ __forceinline__ Seen OfWarp() const {
    Seen all;
    all.most = __reduce_max_sync(0xffffffff, most);
    all.lossy = __any_sync(0xffffffff, lossy != 0);
    return all;
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

// The same for weights that are larger by `share` of their high halves.
__device__ __forceinline__ void SplitWeights(float a, float b, float share,
                                             uint32_t& high, uint32_t& low) {
  const __half2 h = __floats2half2_rn(a, b);
  const float2 back = __half22float2(h);
  const __half2 l = __floats2half2_rn(fmaf(share, back.x, a - back.x),
                                      fmaf(share, back.y, b - back.y));
  high = reinterpret_cast<const uint32_t&>(h);
  low = reinterpret_cast<const uint32_t&>(l);
}

// What halves lose of a value that was scaled to v, or tensor cores of its
// products. The scaled value may be zero because float has no number as small.
__device__ __forceinline__ float LostOf(float value, float v) {
  const float rest = v - __half2float(__float2half_rn(v));
  const float lost = fabsf(rest - __half2float(__float2half_rn(rest)));
  return value != 0 && fabsf(v) < kLeastNormal ? fmaxf(lost, kDenormalLost)
                                               : lost;
}
__device__ __forceinline__ bool IsLossy(float value, float v) {
  return LostOf(value, v) > fabsf(v) * kKeptShare;
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

// Multiplies by 2^exponent, exactly: float has no powers above 2^127.
class FilterScale {
 public:
  __device__ __forceinline__ explicit FilterScale(int exponent,
                                                  bool exact = false)
      : first_(PowerOfTwo(min(exponent, 127))),
        second_(PowerOfTwo(max(exponent - 127, 0))),
        exact_(exact) {}
  __device__ __forceinline__ float operator()(float v) const {
    return v * first_ * second_;
  }
  // Whether all of the filter's scaled weights are halves.
  __device__ __forceinline__ bool exact() const { return exact_; }

 private:
  float first_, second_;
  bool exact_;
};

// Chooses the scale of a filter, of which this is the block, and stores what is
// known of it to *filter: `weights` weights from k on, or none for a column
// without a filter. All threads of the block call this together, and once only.
__device__ __forceinline__ FilterScale ScaleFilter(const float* k, int weights,
                                                   ScaledFilter* filter) {
  __shared__ uint32_t largest;
  __shared__ int lossy, sum, magnitude, signs, not_zero, split;
  if (threadIdx.x == 0) {
    largest = 0, lossy = 0, sum = 0, magnitude = 0, signs = 0, not_zero = 0;
    split = 0;
  }
  __syncthreads();
  uint32_t most = __reduce_max_sync(
      0xffffffff, LargestOfThread(k, threadIdx.x, blockDim.x, weights));
  if (threadIdx.x % 32 == 0) atomicMax(&largest, most);
  __syncthreads();
  most = largest;
  const int exponent = IsFinite(most) ? FilterExponent(most) : 0;
  const FilterScale scale(exponent);
  // Integers, so that it does not matter in which order threads add.
  int of_thread[6] = {};
  for (int i = threadIdx.x; i < weights; i += blockDim.x) {
    const float weight = k[i], v = scale(weight);
    const int rounded = __float2int_rn(v / 32);
    of_thread[0] += IsLossy(weight, v);
    of_thread[1] += rounded;
    of_thread[2] += abs(rounded);
    of_thread[3] += (weight > 0) - (weight < 0);
    of_thread[4] += weight != 0;
    of_thread[5] += v != __half2float(__float2half_rn(v));
  }
#pragma unroll
  for (int& v : of_thread) v = __reduce_add_sync(0xffffffff, v);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&lossy, of_thread[0]);
    atomicAdd(&sum, of_thread[1]);
    atomicAdd(&magnitude, of_thread[2]);
    atomicAdd(&signs, of_thread[3]);
    atomicAdd(&not_zero, of_thread[4]);
    atomicAdd(&split, of_thread[5]);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    *filter = {IsFinite(most) ? exponent : kNotScalable, lossy,
               abs(sum) > magnitude - magnitude / 4 ||
                   abs(signs) > not_zero - not_zero / 4};
  }
  return FilterScale(exponent, split == 0);
}

// A filter's exponent where a float has its own, modulo 2^32.
__device__ __forceinline__ uint32_t ExponentBits(int filter_exponent) {
  return static_cast<uint32_t>(filter_exponent) << 23;
}
// The factor that takes back the scales of inputs and filter, if CanScaleBack.
__device__ __forceinline__ float ScaleBack(int exponent,
                                           uint32_t filter_exponent_bits) {
  return __uint_as_float((static_cast<uint32_t>(127 - exponent) << 23) -
                         filter_exponent_bits);
}

// What is known of all filters together.
struct AllFilters {
  // The exponents of inputs, none of them lossy, with which all outputs of all
  // filters are certain.
  int least, most;
  bool one_signed;  // whether some filter is

  // All lanes of a warp call this.
  static __device__ __forceinline__ AllFilters Of(const ScaledFilter* filters,
                                                  int count) {
    int low = -127, high = 127;
    bool one_signed = false;
    for (int m = threadIdx.x % 32; m < count; m += 32) {
      const ScaledFilter filter = filters[m];
      low = max(low, -127 - filter.exponent);
      high = min(high, filter.lossy > 0 ? -128 : 126 - filter.exponent);
      one_signed |= filter.one_signed;
    }
    return {__reduce_max_sync(0xffffffff, low),
            __reduce_min_sync(0xffffffff, high),
            __any_sync(0xffffffff, one_signed) != 0};
  }
  // Whether some outputs of tiles with this exponent may not be certain.
  __device__ __forceinline__ bool Doubt(int exponent) const {
    return exponent < least || exponent > most;
  }
};

#endif

// Scales the filters, splits them and stores them in the lanes' order:
// arranged[filter group][step][filter row, or pair][tile][lane]. A block
// arranges one filter, those beyond M as zeros.
static __global__ void ArrangeFiltersKernel(
    const float* k, char* arranged, ScaledFilter* filters,
    const __grid_constant__ FilterLayout layout) {
#if __CUDA_ARCH__ >= 800
  WaitForKernelBefore();
  LetNextKernelStart();
  const int m = blockIdx.x;
  const int weights = m < layout.M ? layout.C * layout.K * layout.K : 0;
  const FilterScale scale =
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
      v[j] = scale(LoadIfBelow(
          0, exists,
          k + ((int64_t{m} * layout.C + c) * layout.K + p) * layout.K + q));
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

constexpr int64_t LaneFilterBytes(const FilterLayout& layout) {
  return int64_t{layout.filter_groups} * layout.filter_vectors *
         kSplitVectorBytes;
}

// Queues ArrangeFiltersKernel.
inline Error ArrangeLaneFilters(const FilterLayout& layout,
                                const ArrangedFilters& filters,
                                bool may_overlap, cudaStream_t stream) {
  return LaunchOverlapping("ArrangeFiltersKernel", ArrangeFiltersKernel,
                           may_overlap, layout.filters(), 256,
                           /*shared_bytes=*/0, stream, filters.k, filters.data,
                           filters.known, layout);
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_HALVES_CUH_
