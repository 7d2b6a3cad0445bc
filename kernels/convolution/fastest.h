// Which variant to take when speed is all that counts.
#ifndef KERNELS_CONVOLUTION_FASTEST_H_
#define KERNELS_CONVOLUTION_FASTEST_H_

#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// The fastest variant of class fp32 by rule: of those that were measured to be
// the best for one channel, for several, and for anything, the first that takes
// the problem on this device. The error is that of the last, if none does.
absl::StatusOr<const Variant*> FastestVariant(Backend backend,
                                              const Problem& problem);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_FASTEST_H_
