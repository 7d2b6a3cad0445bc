// Outputs in device memory, compared with the definition in float64 there: all
// of a batch in the time that a host takes for a few images.
#ifndef KERNELS_MEASURE_OUTPUT_ERRORS_H_
#define KERNELS_MEASURE_OUTPUT_ERRORS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/convolution/problem.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/sampled_reference.h"

namespace convlab::cuda {

class OutputErrors {
 public:
  OutputErrors() = default;
  // Unavailable without a GPU.
  static absl::StatusOr<OutputErrors> Create();

  // The error of all elements of y. Waits for the device. Sizes are as in
  // problem.h.
  absl::StatusOr<MeasuredError> Whole(const Problem& problem, const float* x,
                                      const float* k, const float* y) const;
  // That of `count` elements that the seed draws, the same as DrawnError's.
  absl::StatusOr<MeasuredError> Drawn(const Problem& problem, const float* x,
                                      const float* k, const float* y,
                                      int64_t count, uint64_t seed) const;

 private:
  absl::StatusOr<MeasuredError> Errors(const Problem& problem, const float* x,
                                       const float* k, const float* y,
                                       int64_t count, bool drawn,
                                       uint64_t seed) const;
  DeviceBuffer sums_;
};

}  // namespace convlab::cuda

#endif  // KERNELS_MEASURE_OUTPUT_ERRORS_H_
