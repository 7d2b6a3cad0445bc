#include "kernels/convolution/cuda/direct/instance_runner.h"

#include "common/status/status.h"
#include "kernels/convolution/cuda/direct/instances.h"
#include "kernels/convolution/cuda/lib/adapt.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/cuda/device.h"

namespace convlab::cuda {
namespace {

constexpr int kDevice = 0;

}  // namespace

absl::StatusOr<bool> DirectTiledInstanceTakes(int instance,
                                              const Problem& problem) {
  ASSIGN_OR_RETURN(const DeviceLimits limits, FindLimits(kDevice));
  DirectPlan plan;
  return MakeDirectTiledPlan(kDirectTiledInstances[instance], problem, limits,
                             &plan);
}

absl::StatusOr<int> ChosenDirectTiledInstance(const Problem& problem) {
  ASSIGN_OR_RETURN(const DeviceLimits limits, FindLimits(kDevice));
  DirectPlan plan;
  return ChooseDirectTiled(problem, limits, &plan);
}

absl::StatusOr<std::unique_ptr<Convolution>> MakeDirectTiledConvolution(
    int instance, const Problem& problem) {
  const CurrentDevice current(kDevice);
  RETURN_IF_ERROR(current.status());
  Error error;
  Kernel* const kernel = MakeDirectTiledInstance(instance, problem, &error);
  Resources resources;
  resources.device = kDevice;
  return WrapKernel(kernel, error, resources);
}

absl::StatusOr<DirectTiledUsage> FindDirectTiledUsage(int instance,
                                                      const Problem& problem) {
  const CurrentDevice current(kDevice);
  RETURN_IF_ERROR(current.status());
  DirectTiledUsage usage;
  RETURN_IF_ERROR(ToStatus(AskDirectTiledUsage(instance, problem, &usage)));
  return usage;
}

}  // namespace convlab::cuda
