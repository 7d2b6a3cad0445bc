#include "kernels/convolution/cuda/lib/adapt.h"

#include "common/status/status.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/cuda/device.h"

namespace convlab::cuda {
namespace {

class KernelConvolution : public Convolution {
 public:
  explicit KernelConvolution(Kernel* kernel) : kernel_(kernel) {}

  absl::Status Run(const float* x, const float* k, float* y) override {
    return ToStatus(kernel_->Run(x, k, y));
  }

 private:
  const std::unique_ptr<Kernel> kernel_;
};

}  // namespace

absl::Status Supports(const KernelVariant& kernel, const Problem& problem) {
  const char* const reason = kernel.reject(problem);
  if (reason == nullptr) return absl::OkStatus();
  return absl::UnimplementedError(reason);
}

absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution(
    const KernelVariant& kernel, const Problem& problem) {
  RETURN_IF_ERROR(FindDevice().status());
  Error error;
  auto convolution = WrapKernel(kernel.make(problem, &error));
  RETURN_IF_ERROR(ToStatus(error));
  return convolution;
}

std::unique_ptr<Convolution> WrapKernel(Kernel* kernel) {
  return std::make_unique<KernelConvolution>(kernel);
}

Variant Describe(const KernelVariant& kernel) {
  Variant variant = {};
  variant.name = kernel.name;
  variant.backend = Backend::kCuda;
  variant.accuracy = kernel.accuracy;
  variant.summary = kernel.summary;
  variant.reason = kernel.reason;
  variant.exact_on_integers = kernel.exact_on_integers;
  return variant;
}

}  // namespace convlab::cuda
