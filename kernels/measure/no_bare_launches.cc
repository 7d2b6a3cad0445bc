// Implements bare_launches.h in a build without the CUDA Toolkit.
#include "kernels/cuda/device.h"
#include "kernels/measure/bare_launches.h"

namespace convlab::cuda {

struct BareLaunches::Kernels {};

absl::StatusOr<BareLaunches> BareLaunches::Of(
    const DeviceStream&, const std::function<absl::Status()>&) {
  return FindDevice().status();
}
int BareLaunches::count() const { return 0; }
absl::Status BareLaunches::Start(bool) const { return FindDevice().status(); }

}  // namespace convlab::cuda
