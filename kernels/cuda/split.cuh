// Floats as two halves each, and powers of two to scale them by
// (docs/numerics.md).
#ifndef KERNELS_CUDA_SPLIT_CUH_
#define KERNELS_CUDA_SPLIT_CUH_

#include <cuda_fp16.h>

#include <cstdint>

namespace convlab::cuda {

// Two floats as halves, and what is left of each as halves too.
struct SplitPair {
  uint32_t high, low;
};
__device__ __forceinline__ SplitPair SplitHalves(float a, float b) {
  const __half2 high = __floats2half2_rn(a, b);
  const float2 back = __half22float2(high);
  const __half2 low = __floats2half2_rn(a - back.x, b - back.y);
  return {reinterpret_cast<const uint32_t&>(high),
          reinterpret_cast<const uint32_t&>(low)};
}

// 2^e for e from -126 to 127.
__device__ __forceinline__ float PowerOf2(int e) {
  return __int_as_float((e + 127) << 23);
}

// For the bits of a largest magnitude: whether it is infinite or NaN, and the
// power of two that is not above it, at least -126.
__device__ __forceinline__ bool IsFiniteMagnitude(uint32_t most) {
  return most < 0x7f800000;
}
__device__ __forceinline__ int PowerOf(uint32_t most) {
  return max(static_cast<int>(most >> 23) - 127, -126);
}

__device__ __forceinline__ uint32_t LargerMagnitude(uint32_t most, float v) {
  return max(most, __float_as_uint(v) & 0x7fffffff);
}

// Weights whose largest magnitude is `most` are multiplied by 2^(14 - power),
// which brings it between 2^14 and 2^15, in two steps, since that factor may be
// beyond float's range.
__device__ __forceinline__ SplitPair SplitWeights(uint32_t most, float a,
                                                  float b) {
  const int power = PowerOf(most);
  const float unit = power == 127 ? 0x1p-127f : PowerOf2(-power);
  return SplitHalves(a * unit * 0x1p14f, b * unit * 0x1p14f);
}

__device__ __forceinline__ float NotANumber() {
  return __int_as_float(0x7fffffff);
}

// What values whose largest magnitude is `most`, a row's in a chunk, are
// multiplied by, so that it comes between 2^14 and 2^15, and what the sums are
// multiplied by. That undoes it and takes 2^14 of the weights' scale; columns
// take the rest. NaN if the row has infinities or NaN. A row below 2^-98 is not
// brought up all the way.
struct RowScale {
  float scale, factor;
};
__device__ __forceinline__ RowScale ScaleOf(uint32_t most) {
  const int e = min(14 - PowerOf(most), 112);
  const bool finite = IsFiniteMagnitude(most);
  return {finite ? PowerOf2(e) : 0, finite ? PowerOf2(-e - 14) : NotANumber()};
}

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_SPLIT_CUH_
