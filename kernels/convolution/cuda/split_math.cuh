// Floats as pairs of halves: what the kernels that reach float32's accuracy
// with products in half precision share.
#ifndef KERNELS_CONVOLUTION_CUDA_SPLIT_MATH_CUH_
#define KERNELS_CONVOLUTION_CUDA_SPLIT_MATH_CUH_

#include <cuda_fp16.h>

#include <cstdint>

namespace convlab::cuda {

// In place of an exponent: there are infinities or NaN among the filters.
constexpr int kNotScalable = 1 << 20;

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
// changes every 15 powers, so that tiles of one kind mostly have the same: the
// largest becomes 1 to 2^15, and one between 1/32 and 1023 is multiplied by 32.
// A scaled value's rounding error is at most 2^-25 of the largest then.
__device__ __forceinline__ int InputExponent(uint32_t most) {
  const int power = static_cast<int>(most >> 23) - 127;
  return min(5 - 15 * ((power + 5 + 150) / 15 - 10), 127);
}

// The same for filters, of which the largest becomes 2^14 to 2^15.
__device__ __forceinline__ int FilterExponent(uint32_t most) {
  const int power = static_cast<int>(most >> 23) - 127;
  return most == 0 ? 0 : min(14 - power, 127);
}

// a and b as halves, and what is missing of them.
__device__ __forceinline__ void Split(float a, float b, uint32_t& high,
                                      uint32_t& low) {
  const __half2 h = __floats2half2_rn(a, b);
  const float2 back = __half22float2(h);
  const __half2 l = __floats2half2_rn(a - back.x, b - back.y);
  high = reinterpret_cast<const uint32_t&>(h);
  low = reinterpret_cast<const uint32_t&>(l);
}

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_SPLIT_MATH_CUH_
