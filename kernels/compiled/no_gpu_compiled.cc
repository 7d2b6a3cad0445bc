// In place of gpu_compiled.cc in a build without the CUDA Toolkit.
#include "common/status/status.h"
#include "kernels/compiled/compiled.h"
#include "kernels/cuda/device.h"

namespace convlab {

absl::StatusOr<std::unique_ptr<CompiledNetwork>> CompileForGpu(
    const Network&, const NetworkWeights&, int, Workers&) {
  RETURN_IF_ERROR(cuda::FindDevice().status());
  return absl::InternalError("a GPU in a build without the CUDA Toolkit");
}

}  // namespace convlab
