// The table of all variants, generated from variants.bzl. Tests,
// milestones, benchmark and reports are driven by it.
#ifndef KERNELS_CONVOLUTION_VARIANTS_H_
#define KERNELS_CONVOLUTION_VARIANTS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/cuda/lib/device_limits.h"

namespace convlab {

// Every variant, the CPU's before the GPU's, in the order of the ladder.
absl::Span<const Variant* const> Variants();

// The estimates of all candidates of the GPU (Variant::estimate_ns) for the
// problem on a device with these limits, in nanoseconds by name, without
// candidates whose plans do not take the problem. Needs no GPU; empty in a
// build without CUDA.
std::map<std::string, double> EstimatesNs(const Problem& problem,
                                          const cuda::DeviceLimits& limits);

// The variant of that name. The error lists the backend's variants, and says so
// where the name is another backend's.
absl::StatusOr<const Variant*> FindVariant(Backend backend,
                                           absl::string_view name);

// The variant's place on its backend's ladder, from 1; 0 if it is not on the
// ladder.
int Rung(const Variant& variant);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_VARIANTS_H_
