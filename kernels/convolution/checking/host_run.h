// Runs a variant of either backend on tensors in host memory: for tests and for
// verification before timing.
#ifndef KERNELS_CONVOLUTION_CHECKING_HOST_RUN_H_
#define KERNELS_CONVOLUTION_CHECKING_HOST_RUN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"

namespace convlab {

// Returns y of `variant` for x and k, with sizes as in problem.h, and with an
// epilogue, whose bias is in host memory too, as in epilogue.h. The output is
// filled with NaN before the run, so that unwritten elements are found. Returns
// Internal if the run changed x or k. With `runs` above 1 the same convolution
// runs again on the poisoned output; if `deterministic` is set, Internal is
// returned if the last output differs from the first in any bit. A cuda variant
// returns Unavailable without a GPU.
absl::StatusOr<std::vector<float>> RunOnHostTensors(
    const Variant& variant, const Problem& problem, const Resources& resources,
    const std::vector<float>& x, const std::vector<float>& k, int runs = 1,
    bool deterministic = true, const Epilogue& epilogue = {});

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_HOST_RUN_H_
