// Verification of a variant, before it is timed.
#ifndef KERNELS_CONVOLUTION_CHECKING_VERIFY_H_
#define KERNELS_CONVOLUTION_CHECKING_VERIFY_H_

#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"

namespace convlab {

// Runs the variant on random inputs and weights from [-1, 1) and returns its
// relative L2 error against float64. Returns DataLoss, with both numbers and
// where it is wrong (mismatch.h), if the error exceeds the bound of the
// variant's accuracy class, or if an output breaks the contract of class fp32
// (contract.h) and the variant is of it; other errors are those of the run. The
// time of the reference grows with the problem, so the batch should be small.
absl::StatusOr<double> Verify(const Variant& variant, const Problem& problem,
                              const Resources& resources);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_VERIFY_H_
