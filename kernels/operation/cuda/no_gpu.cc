// Implements gpu.h in a build without the CUDA Toolkit: there is no device, so
// that these functions are never reached.
#include "kernels/operation/cuda/gpu.h"

namespace convlab::cuda {
namespace {

absl::Status NoCuda() {
  return absl::UnavailableError("this program was built without CUDA");
}

}  // namespace

absl::StatusOr<GeneralConvolution> PrepareGenerally(const Operation&) {
  return NoCuda();
}
absl::StatusOr<double> EstimateAroundNs(const Operation&, const WorkAround&) {
  return NoCuda();
}
absl::StatusOr<double> EstimateCudnnNs(const Operation&) { return NoCuda(); }
absl::Status PadInput(const Operation&, const void*, float*, bool, Stream) {
  return NoCuda();
}
absl::Status FiltersToFloats(const Operation&, const void*, float*, bool,
                             Stream) {
  return NoCuda();
}
absl::Status ConvolveGenerally(const GeneralConvolution&, const void*,
                               const void*, const void*, void*, Stream) {
  return NoCuda();
}
absl::Status FinishSums(const Operation&, const float*, const void*, void*,
                        bool, Stream) {
  return NoCuda();
}
absl::Status CheckDeviceMemory(int, const char*, const void*) {
  return NoCuda();
}
absl::Status CheckStream(int, bool, Stream) { return NoCuda(); }
uint64_t ContextNumber() { return 0; }

}  // namespace convlab::cuda
