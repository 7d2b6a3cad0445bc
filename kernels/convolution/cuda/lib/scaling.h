// The arithmetic of scaled halves: by which powers of two operands are
// multiplied, what the halves may lose, and from which magnitude on a sum is
// nevertheless as exact as float32 asks. halves.cuh is the device's side. Free
// of CUDA, so that it is tested without a GPU.
//
// A scaled value v is represented by two halves: h is v rounded, l is v - h
// rounded. Together they hold v to the larger of 2^-23 of it and 2^-25, half of
// the least half. Inputs from 2^kLeastExponent on are kept: they lose up to
// 2^-21, where the rest of the arithmetic loses less than 2^-21 of the sum of
// all products' magnitudes. Smaller ones that are not zero are lossy. Weights,
// which are split once, are lossy where they do lose more than 2^-23.
//
// Each lossy factor thus adds at most 2^-25 * 2^15 to an output's error. Its
// share of the bound is 2^-22 of the sum of all products' magnitudes, which is
// at least the output's own: an output of n lossy factors is certain from
// n * 2^-10 * 2^22 on. Outputs below are computed by the definition.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_SCALING_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_SCALING_H_

#include <cstdint>

namespace convlab::cuda {

constexpr int kLeastExponent = -4;

// In place of an exponent: there are infinities or NaN.
constexpr int kNotScalable = 1 << 20;

// The bits of 2^e as a float, for e from -149 to 127.
constexpr uint32_t PowerOfTwoBits(int e) {
  return e >= -126 ? static_cast<uint32_t>(e + 127) << 23 : 1u << (e + 149);
}

// The exponent of the power of two by which inputs up to `most`, the bits of a
// magnitude, are scaled. It changes only every 3 powers, so that the tiles of a
// tensor mostly share it: the largest scaled value is 2^12 to 2^15 (less where
// float has no such power). If the largest input is from 1/4 to below 2, it is
// kUsualExponent.
constexpr int kUsualExponent = 14;
constexpr int InputExponent(uint32_t most) {
  const int power = static_cast<int>(most >> 23) - 127;
  const int exponent = 14 - 3 * ((power + 2 + 150) / 3 - 50);
  return exponent < 127 ? exponent : 127;
}

// The same for a filter. Its largest scaled weight is 2^14 to 2^15.
constexpr int FilterExponent(uint32_t most) {
  const int power = static_cast<int>(most >> 23) - 127;
  return most == 0 ? 0 : 14 - power < 127 ? 14 - power : 127;
}

// The bits of the least input's magnitude that is kept after scaling.
constexpr uint32_t LeastKept(int exponent) {
  return PowerOfTwoBits(kLeastExponent - exponent);
}

// The least certain magnitude of a sum of scaled products, of which so many
// factors may be lossy.
constexpr float LeastCertainSum(int lossy) {
  return 4096.f * static_cast<float>(lossy);
}

// Whether float32 has the power of two that takes back both scales.
constexpr bool CanScaleBack(int exponent, int filter_exponent) {
  const int all = exponent + filter_exponent;
  return all >= -127 && all <= 126;
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_SCALING_H_
