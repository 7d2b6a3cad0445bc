#include "kernels/convolution/cuda/few_images/padded.h"

#include "common/status/status.h"
#include "kernels/convolution/cuda/few_images/padded_kernel.h"
#include "kernels/convolution/cuda/lib/adapt.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/cuda/device.h"

namespace convlab::cuda {

absl::StatusOr<std::unique_ptr<Convolution>> MakePaddedFewImages(
    const Problem& problem, const Epilogue& epilogue, const Inset& inset,
    const Resources& resources) {
  const CurrentDevice current(resources.device);
  RETURN_IF_ERROR(current.status());
  Error error;
  Kernel* const kernel = MakePaddedKernel(problem, epilogue, inset, &error);
  return WrapKernel(kernel, error, resources);
}

}  // namespace convlab::cuda
