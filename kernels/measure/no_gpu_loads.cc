// Implements gpu_loads.h in a build without the CUDA Toolkit.
#include "common/status/status.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/gpu_loads.h"

namespace convlab::cuda {

absl::Status StartWait(int) { return FindDevice().status(); }
absl::Status StartFill(void*, int64_t) { return FindDevice().status(); }
absl::Status StartCopy(const void*, void*, int64_t) {
  return FindDevice().status();
}
absl::StatusOr<double> StartArithmetic(Arithmetic, int, void*) {
  return FindDevice().status();
}
absl::StatusOr<WordSums> WordSums::Create() { return FindDevice().status(); }
absl::StatusOr<int64_t> WordSums::Count(const void*, int64_t, uint32_t) const {
  return FindDevice().status();
}
absl::StatusOr<uint64_t> WordSums::Fingerprint(const void*, int64_t) const {
  return FindDevice().status();
}

}  // namespace convlab::cuda
