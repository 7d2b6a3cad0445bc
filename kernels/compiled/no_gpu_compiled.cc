// In place of gpu_compiled.cc and gpu_device_network.cc in a build without the
// CUDA Toolkit.
#include "common/status/status.h"
#include "kernels/compiled/compiled.h"
#include "kernels/compiled/device_network.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

absl::Status NoGpu() {
  RETURN_IF_ERROR(cuda::FindDevice().status());
  return absl::InternalError("a GPU in a build without the CUDA Toolkit");
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompiledNetwork>> CompileForGpu(
    const Network&, const NetworkWeights&, int, Workers&) {
  return NoGpu();
}

absl::StatusOr<int64_t> GpuPieceImages(const Network&) { return NoGpu(); }

absl::StatusOr<std::unique_ptr<CompiledNetwork>> CompileForGpuInPieces(
    const Network&, const NetworkWeights&, int, int64_t, Workers&) {
  return NoGpu();
}

absl::StatusOr<std::unique_ptr<DeviceNetwork>> CompileForDevice(
    const Network&, const NetworkWeights&, int, Pixels, Workers&) {
  return NoGpu();
}

absl::StatusOr<std::function<absl::Status(Stream)>> Record(DeviceNetwork&,
                                                           const DeviceCall&) {
  return NoGpu();
}

}  // namespace convlab
