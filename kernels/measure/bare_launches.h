// The launches of a call without the call: what the CUDA runtime itself takes
// of the host's time for them.
#ifndef KERNELS_MEASURE_BARE_LAUNCHES_H_
#define KERNELS_MEASURE_BARE_LAUNCHES_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"

namespace convlab::cuda {

class BareLaunches {
 public:
  // Of the kernels that `queue` queues in the stream, which are recorded and
  // not run. `queue` calls nothing that waits or allocates. Unimplemented if it
  // queues something else than kernels, Unavailable in a build without the CUDA
  // Toolkit.
  static absl::StatusOr<BareLaunches> Of(
      const DeviceStream& stream, const std::function<absl::Status()>& queue);

  // How many kernels.
  int count() const;

  // Launches the kernels in the default stream with their arguments, in the
  // order in which CUDA lists them. Each may start before the one before it has
  // ended if they are `overlapping`, which GPUs of compute capability 9.0 and
  // later can: of the first kernel CUDA does not tell whether it was launched
  // so. Other attributes of a launch, such as clusters, are left out.
  absl::Status Start(bool overlapping) const;

 private:
  struct Kernels;
  explicit BareLaunches(std::shared_ptr<const Kernels> kernels)
      : kernels_(std::move(kernels)) {}

  std::shared_ptr<const Kernels> kernels_;
};

}  // namespace convlab::cuda

#endif  // KERNELS_MEASURE_BARE_LAUNCHES_H_
