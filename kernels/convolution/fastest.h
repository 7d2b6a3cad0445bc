// Which variant to take when speed is all that counts.
#ifndef KERNELS_CONVOLUTION_FASTEST_H_
#define KERNELS_CONVOLUTION_FASTEST_H_

#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// The variant of class fp32 that was measured to be the fastest for such a
// layer on GPUs of that compute capability (90 for 9.0; ignored for
// Backend::kCpu). For GPUs and layers that were not measured it is the first of
// a few general ones that takes the problem; the error is that of the last, if
// none does.
absl::StatusOr<const Variant*> FastestVariant(Backend backend,
                                              int compute_capability,
                                              const Problem& problem);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_FASTEST_H_
