// Implements MakeGpuMachine in a build without the CUDA Toolkit.
#include "kernels/cuda/device.h"
#include "kernels/inference/machine.h"

namespace convlab {

absl::StatusOr<std::unique_ptr<Machine>> MakeGpuMachine(bool) {
  return cuda::FindDevice().status();
}

}  // namespace convlab
