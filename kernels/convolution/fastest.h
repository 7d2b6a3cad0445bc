// The choice of the fastest variant for a problem.
#ifndef KERNELS_CONVOLUTION_FASTEST_H_
#define KERNELS_CONVOLUTION_FASTEST_H_

#include <functional>

#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// The nanoseconds that work around a variant takes, which it does not do
// itself.
using AroundNs = std::function<absl::StatusOr<double>(const Variant&)>;

// Returns the variant with the least estimate, with what around_ns adds to it
// unless that is null, among those of this class or a stricter one that
// estimate their time, take the problem on the device and, if that is asked
// for, can be recorded in a graph. A new variant takes part as soon as it has
// an estimate. If none takes the problem, returns Unavailable if there is no
// such device, otherwise Unimplemented with the reason of one of them.
absl::StatusOr<const Variant*> FastestVariant(
    Backend backend, const Problem& problem,
    const Resources& resources = Resources(),
    AccuracyClass accuracy = AccuracyClass::kFp32,
    const AroundNs& around_ns = nullptr);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_FASTEST_H_
