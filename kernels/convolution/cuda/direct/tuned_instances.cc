#include "kernels/convolution/cuda/direct/tuned_instances.h"

#include "common/status/status.h"
#include "kernels/convolution/cuda/lib/adapt.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/cuda/device.h"

namespace convlab::cuda {

absl::StatusOr<std::unique_ptr<Convolution>> MakeTunedConvolution(
    int instance, const Problem& problem) {
  const CurrentDevice current(0);
  RETURN_IF_ERROR(current.status());
  Error error;
  auto convolution = WrapKernel(MakeTunedInstance(instance, problem, &error),
                                /*device=*/0);
  RETURN_IF_ERROR(ToStatus(error));
  return convolution;
}

absl::StatusOr<TunedUsage> FindTunedUsage(int instance,
                                          const Problem& problem) {
  TunedUsage usage;
  RETURN_IF_ERROR(ToStatus(AskTunedUsage(instance, problem, &usage)));
  return usage;
}

}  // namespace convlab::cuda
