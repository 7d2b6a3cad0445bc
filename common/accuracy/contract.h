// The contract of class fp32, for one output. An output y sums n = C*K*K
// products x*k; y64 is the same sum in float64, and S = sum |x||k|. For finite
// inputs of any scale
//
//   |y - y64| <= c * 2^-24 * S + n * 2^-149
//
// where c is at most 16 or four times the worst c that the plain loop in
// float32 shows on the same data, whichever is larger. 2^-24 is float32's unit
// roundoff: c counts roundings of the size of S. The second term is what
// products and sums below float32's normal range may lose, twice what each of n
// fused multiply-adds does there.
//
// The promise holds for each output by itself (a componentwise bound), whatever
// else the tile, the image, the batch or the other filters hold.
#ifndef COMMON_ACCURACY_CONTRACT_H_
#define COMMON_ACCURACY_CONTRACT_H_

#include <cstdint>
#include <limits>

namespace convlab {

// The reference of one output: of `terms` products in float64.
struct OutputReference {
  double y64 = 0;
  double magnitude = 0;  // S
  int64_t terms = 0;     // n
};

// The functions are constexpr, so that code for the GPU can call them.

// Whether partial sums may overflow where the products' magnitudes add up to so
// much.
constexpr bool MayOverflow(double magnitude) { return magnitude >= 0x1p127; }

// The c of the output y: 0 if the difference is within the second term, and
// infinity if y is wrong at any c.
// - Where an input is infinite or NaN, y must be what the definition gives.
// - Where partial sums may overflow, at half of float32's largest value, y may
//   be infinite or NaN. If it is finite, it must be right.
constexpr double ErrorFactor(float y, const OutputReference& reference) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kUnitRoundoff = 0x1p-24;
  constexpr double kLeastFloat = 0x1p-149;  // the smallest denormal
  const double exact = reference.y64;
  // Float64 holds every sum of finite products of floats.
  if (!(exact - exact == 0)) {  // infinite or NaN
    const bool right =
        exact != exact ? y != y : static_cast<double>(y) == exact;
    return right ? 0 : kInfinity;
  }
  if (!(y - y == 0)) return MayOverflow(reference.magnitude) ? 0 : kInfinity;
  const double difference = y < exact ? exact - y : y - exact;
  const double excess =
      difference - kLeastFloat * static_cast<double>(reference.terms);
  if (excess <= 0) return 0;
  return reference.magnitude > 0
             ? excess / (kUnitRoundoff * reference.magnitude)
             : kInfinity;
}

// The largest c that the contract allows, where the plain loop's worst is
// `plain`.
constexpr double AllowedFactor(double plain) {
  return 4 * plain > 16 ? 4 * plain : 16;
}

}  // namespace convlab

#endif  // COMMON_ACCURACY_CONTRACT_H_
