// Which variant to take when speed is all that counts.
#ifndef KERNELS_CONVOLUTION_FASTEST_H_
#define KERNELS_CONVOLUTION_FASTEST_H_

#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// Of the variants of class fp32 that estimate their time and take the problem
// on the device, the one with the least estimate. A new variant takes part as
// soon as its row of the table has an estimate. If none takes the problem:
// Unavailable where there is no such device, otherwise Unimplemented with the
// reason of one of them.
absl::StatusOr<const Variant*> FastestVariant(
    Backend backend, const Problem& problem,
    const Resources& resources = Resources());

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_FASTEST_H_
