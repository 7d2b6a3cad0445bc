// Which variant computes an operation, and what stands around it.
#ifndef KERNELS_OPERATION_CHOICE_H_
#define KERNELS_OPERATION_CHOICE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/operation/operation.h"
#include "kernels/operation/prepared.h"

namespace convlab {

// The epilogue, with a place where a bias will be. It is never read there:
// UseBias names the bias before each run.
Epilogue EpilogueOf(const Operation& operation);

// Whether a variant on a GPU reads a copy of x: padded, or in its format.
bool CopiesInput(const Operation& operation, const Variant& variant);

// Whether a kernel follows a variant that fuses nothing.
bool HasFinish(const Operation& operation);

// Whether the variant computes all of the operation that comes behind the sums;
// otherwise Unimplemented, and on a GPU a kernel of its own follows.
absl::Status CheckFuses(const Operation& operation, const Variant& variant,
                        const Resources& resources);

// The variant for the operation, or null for the general kernel alone.
absl::StatusOr<const Variant*> ChooseVariant(const Operation& operation,
                                             const Target& target);

// The estimated nanoseconds of the variant with what stands around it; 0 if it
// has no estimate.
absl::StatusOr<double> EstimateNs(const Operation& operation,
                                  const Target& target, const Variant& variant,
                                  bool fuses);

}  // namespace convlab

#endif  // KERNELS_OPERATION_CHOICE_H_
