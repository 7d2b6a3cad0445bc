// Whether a variant is right, asked before it is timed.
#ifndef KERNELS_CONVOLUTION_CHECKING_VERIFY_H_
#define KERNELS_CONVOLUTION_CHECKING_VERIFY_H_

#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"

namespace convlab {

// Runs the variant on random inputs and weights from [-1, 1) and returns its
// relative L2 error against float64. DataLoss if the error is beyond what the
// variant's accuracy class allows, with both numbers; other errors are those of
// the run itself. Reference time grows with the problem: use a small batch.
absl::StatusOr<double> Verify(const Variant& variant, const Problem& problem,
                              const Resources& resources);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_VERIFY_H_
