// The arithmetic of scaled halves: by which powers of two operands are
// multiplied, what the halves may lose, and from which magnitude on a sum is
// nevertheless as exact as float32 asks. halves.cuh and mend.cuh are the
// device's side. Free of CUDA, so that it is tested without a GPU.
//
// A scaled value v is represented by two halves: h is v rounded, l is v - h
// rounded. Together they hold v to the larger of 2^-23 of it and 2^-25, half of
// the least half. A value is kept if they lose at most 2^-22 of it, as all do
// from 2^kLeastExponent on, unless it is below kLeastNormal, and zero is; the
// others are lossy. A product of kept factors thus loses at most 12 * 2^-24: as
// much for each of them, and for the product of their low halves.
//
// A lossy factor adds to an output's error at most what it lost times the
// largest other factor. That may be 2^-22 of the sum of all products'
// magnitudes, which is at least the output's own: from a magnitude on an output
// is certain. Outputs below are computed by the definition.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_SCALING_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_SCALING_H_

#include <cstdint>

namespace convlab::cuda {

constexpr int kLeastExponent = -3;
constexpr float kMostLost = 0x1p-25f;  // of any value
constexpr float kKeptShare =
    0x1p-22f;  // of its own, that a kept value may lose
// Tensor cores take a denormal half as if it were the least normal one where
// they align products, so that its products lose what those would. So scaled
// values below it are lossy, whatever bits they have.
constexpr float kLeastNormal = 0x1p-14f;
constexpr float kDenormalLost = kKeptShare * kLeastNormal;

// Tensor cores cut sums off towards zero, so that an output that a few products
// dominate comes out too small. Weights are made larger by this share of their
// own, in their low halves, unless all of a filter's are halves and have none:
// sums of integers stay exact. A single product, of which nothing is cut off,
// is then wrong by at most 16 * 2^-24 of itself.
constexpr float kCutShare = 0x1p-22f;

// In place of an exponent: there are infinities or NaN.
constexpr int kNotScalable = 1 << 20;

// The bits of 2^e as a float, for e from -149 to 127.
constexpr uint32_t PowerOfTwoBits(int e) {
  return e >= -126 ? static_cast<uint32_t>(e + 127) << 23 : 1u << (e + 149);
}

// The exponent of the power of two by which inputs up to `most`, the bits of a
// magnitude, are scaled. It changes only every 3 powers, so that the tiles of a
// tensor mostly share it: the largest scaled value is from 1.25 * 2^12 to below
// 1.25 * 2^15 (less where float has no such power). If the largest input is
// from 5/32 to below 5/4, the exponent is kUsualExponent.
constexpr int kUsualExponent = 15;
constexpr int InputExponent(uint32_t most) {
  constexpr int kQuarter = 1 << 21;  // of a mantissa's unit
  const int power = static_cast<int>(most) < kQuarter
                        ? -128
                        : static_cast<int>((most - kQuarter) >> 23) - 127;
  const int exponent = 15 - 3 * ((power + 3 + 150) / 3 - 50);
  return exponent < 127 ? exponent : 127;
}

// The same for a filter. Its largest scaled weight is from 2^14 to below 2^15.
// Up to 163, so that float may not have the power.
constexpr int FilterExponent(uint32_t most) {
  if (most == 0) return 0;
  int power = static_cast<int>(most >> 23) - 127;
  if (power == -127) {  // denormal
    for (power = -150; most != 0; most >>= 1) ++power;
  }
  return 14 - power;
}

// The bits of the least input's magnitude that is surely kept after scaling.
constexpr uint32_t LeastKept(int exponent) {
  return PowerOfTwoBits(kLeastExponent - exponent);
}

// The least certain magnitude of a sum of scaled products, of which so many
// factors may be lossy, none having lost more than `lost`.
constexpr float LeastCertainSum(int lossy, float lost = kMostLost) {
  // The largest factor is below 1.25 * 2^15.
  return 1.25f * 0x1p15f * 0x1p22f * lost * static_cast<float>(lossy);
}

// Whether float32 has the power of two that takes back both scales.
constexpr bool CanScaleBack(int exponent, int filter_exponent) {
  const int all = exponent + filter_exponent;
  return all >= -127 && all <= 126;
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_SCALING_H_
