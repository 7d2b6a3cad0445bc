// The convolution in double precision, the reference for all variants.
#ifndef KERNELS_CONVOLUTION_CHECKING_REFERENCE_H_
#define KERNELS_CONVOLUTION_CHECKING_REFERENCE_H_

#include <vector>

#include "common/parallel/parallel.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// Returns y of the valid `problem`, accumulated in float64; sizes as in
// problem.h.
std::vector<double> ReferenceConvolution(const Problem& problem, const float* x,
                                         const float* k, Workers& workers);

// y in float64, the same sums of the products' magnitudes, and y by the plain
// loop in float32 over c, p and q, whose rounding errors others are compared
// with.
struct ReferenceSums {
  std::vector<double> y, magnitude;
  std::vector<float> plain;
};
ReferenceSums ReferenceWithMagnitudes(const Problem& problem, const float* x,
                                      const float* k, Workers& workers);

// Applies the epilogue to y, as ReferenceConvolution returns it: bias,
// activation and pooling one after the other, in float64. The bias is in host
// memory. A window with a NaN has the maximum NaN.
std::vector<double> ReferenceEpilogue(const Problem& problem,
                                      const Epilogue& epilogue,
                                      std::vector<double> y, Workers& workers);

// ||y - reference|| / ||reference|| in the L2 norm; 0 if both are zero, and NaN
// or infinity if y holds one, so that such an error exceeds every bound.
double RelativeError(const float* y, const std::vector<double>& reference);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_REFERENCE_H_
