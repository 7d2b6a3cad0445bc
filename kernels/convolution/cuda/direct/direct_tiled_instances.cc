#include "kernels/convolution/cuda/direct/direct_tiled_instances.h"

#include "common/status/status.h"
#include "kernels/convolution/cuda/lib/adapt.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/cuda/device.h"

namespace convlab::cuda {

absl::StatusOr<std::unique_ptr<Convolution>> MakeDirectTiledConvolution(
    int instance, const Problem& problem) {
  const CurrentDevice current(0);
  RETURN_IF_ERROR(current.status());
  Error error;
  auto convolution =
      WrapKernel(MakeDirectTiledInstance(instance, problem, &error),
                 /*device=*/0);
  RETURN_IF_ERROR(ToStatus(error));
  return convolution;
}

absl::StatusOr<DirectTiledUsage> FindDirectTiledUsage(int instance,
                                                      const Problem& problem) {
  DirectTiledUsage usage;
  RETURN_IF_ERROR(ToStatus(AskDirectTiledUsage(instance, problem, &usage)));
  return usage;
}

}  // namespace convlab::cuda
