// Implements output_errors.h in a build without the CUDA Toolkit.
#include "common/status/status.h"
#include "kernels/measure/output_errors.h"

namespace convlab::cuda {

absl::StatusOr<OutputErrors> OutputErrors::Create() {
  return FindDevice().status();
}
absl::StatusOr<MeasuredError> OutputErrors::Whole(const Problem&, const float*,
                                                  const float*,
                                                  const float*) const {
  return FindDevice().status();
}
absl::StatusOr<MeasuredError> OutputErrors::Drawn(const Problem&, const float*,
                                                  const float*, const float*,
                                                  int64_t, uint64_t) const {
  return FindDevice().status();
}

}  // namespace convlab::cuda
