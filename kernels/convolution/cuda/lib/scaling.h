// The arithmetic of scaled halves: by which powers of two operands are
// multiplied, what the halves may lose, and from which magnitude on a sum is
// nevertheless as exact as float32 asks. halves.cuh is the device's side. Free
// of CUDA, so that it is tested without a GPU.
//
// A scaled value v is represented by two halves: h is v rounded, l is v - h
// times 2^kLowExponent, rounded. l then has the same range as h, and together
// they hold v to 2^-23 of it down to 2^kLeastExponent. What is smaller, but not
// zero, is lossy: its error is up to 2^-36, and with what is left out of a
// product, low by low, up to 2^-35 of the other operand.
//
// Each lossy factor thus adds at most 2^-35 * 2^15 to an output's error. Its
// share of the bound is 2^-23 of the sum of all products' magnitudes, which is
// at least the output's own: an output of n lossy factors is certain from
// n * 2^-20 * 2^23 on. Outputs below are computed by the definition.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_SCALING_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_SCALING_H_

#include <cstdint>

namespace convlab::cuda {

constexpr int kLowExponent = 11;
constexpr int kLeastExponent = -13;
// Where a kernel adds all three products to one sum, low halves of inputs meet
// filters' high halves times 2^-kLowExponent, and filters' low halves are not
// scaled. Smaller weights than 2^this are lossy there: they lose up to 2^-25 of
// either half.
constexpr int kLeastOneSumExponent = -2;

// In place of an exponent: there are infinities or NaN.
constexpr int kNotScalable = 1 << 20;

// The bits of 2^e as a float, for e from -149 to 127.
constexpr uint32_t PowerOfTwoBits(int e) {
  return e >= -126 ? static_cast<uint32_t>(e + 127) << 23 : 1u << (e + 149);
}

// The exponent of the power of two by which inputs up to `most`, the bits of a
// magnitude, are scaled. It changes only every 10 powers, so that the tiles of
// a tensor mostly share it: the largest scaled value is 2^5 to 2^15 (less where
// float has no such power), and inputs up to between 1/32 and 32 are multiplied
// by kUsualExponent's.
constexpr int kUsualExponent = 10;
constexpr int InputExponent(uint32_t most) {
  const int power = static_cast<int>(most >> 23) - 127;
  const int exponent = 10 - 10 * ((power + 5 + 150) / 10 - 15);
  return exponent < 127 ? exponent : 127;
}

// The same for a filter. Its largest scaled weight is 2^14 to 2^15.
constexpr int FilterExponent(uint32_t most) {
  const int power = static_cast<int>(most >> 23) - 127;
  return most == 0 ? 0 : 14 - power < 127 ? 14 - power : 127;
}

// The bits of the least magnitude that is not lossy after scaling.
constexpr uint32_t LeastKept(int exponent, int least_exponent) {
  return PowerOfTwoBits(least_exponent - exponent);
}

// The least certain magnitude of a sum of scaled products, of which so many
// weights are lossy and, where inputs may be lossy, so many inputs.
constexpr float LeastCertainSum(int inputs, int lossy_weights, bool one_sum) {
  return 8.f * static_cast<float>(inputs) +
         (one_sum ? 16384.f : 8.f) * static_cast<float>(lossy_weights);
}

// Whether float32 has the power of two that takes back both scales.
constexpr bool CanScaleBack(int exponent, int filter_exponent) {
  const int all = exponent + filter_exponent;
  return all >= -127 && all <= 126;
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_SCALING_H_
