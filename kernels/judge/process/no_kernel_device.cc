// Implements kernel_device.h in a build without the CUDA Toolkit.
#include "kernels/judge/process/kernel_device.h"

namespace convlab {

absl::StatusOr<std::unique_ptr<KernelDevice>> KernelDevice::Create(int) {
  return absl::UnavailableError(
      "no NVIDIA GPU can be used: this program was built without the CUDA "
      "Toolkit");
}

}  // namespace convlab
