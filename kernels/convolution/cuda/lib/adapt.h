// Makes a Variant, as the rest of the project knows it, of a KernelVariant.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_ADAPT_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_ADAPT_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"

namespace convlab::cuda {

class Kernel;
struct KernelVariant;

absl::Status Supports(const KernelVariant& kernel, const Problem& problem);
absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution(
    const KernelVariant& kernel, const Problem& problem);
Variant Describe(const KernelVariant& kernel);

// Takes ownership.
std::unique_ptr<Convolution> WrapKernel(Kernel* kernel);

// A Variant's functions take no variant, so each kernel gets a pair of its own.
template <const KernelVariant& kernel>
Variant Adapt() {
  Variant variant = Describe(kernel);
  variant.supports = [](const Problem& problem) {
    return Supports(kernel, problem);
  };
  variant.make = [](const Problem& problem, const Resources&) {
    return MakeConvolution(kernel, problem);
  };
  return variant;
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_ADAPT_H_
