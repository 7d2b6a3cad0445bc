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

namespace convlab {

// The reference of one output: of `terms` products in float64.
struct OutputReference {
  double y64 = 0;
  double magnitude = 0;  // S
  int64_t terms = 0;     // n
};

// Whether partial sums may overflow where the products' magnitudes add up to so
// much.
bool MayOverflow(double magnitude);

// The c of the output y: 0 if the difference is within the second term, and
// infinity if y is wrong at any c.
// - Where an input is infinite or NaN, y must be what the definition gives.
// - Where partial sums may overflow, at half of float32's largest value, y may
//   be infinite or NaN. If it is finite, it must be right.
double ErrorFactor(float y, const OutputReference& reference);

// The largest c that the contract allows, where the plain loop's worst is
// `plain`.
double AllowedFactor(double plain);

}  // namespace convlab

#endif  // COMMON_ACCURACY_CONTRACT_H_
