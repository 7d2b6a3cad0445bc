#include "kernels/convolution/cuda/lib/adapt.h"

#include <utility>

#include "common/status/status.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/cuda/device.h"

namespace convlab::cuda {
namespace {

class KernelConvolution : public Convolution {
 public:
  KernelConvolution(std::unique_ptr<Kernel> kernel, DeviceBuffer memory,
                    const Resources& resources)
      : device_(resources.device),
        workspace_bytes_(resources.callers_workspace ? kernel->memory().bytes()
                                                     : 0),
        kernel_(std::move(kernel)),
        memory_(std::move(memory)) {}

  // Memory is freed on its own device.
  ~KernelConvolution() override {
    const CurrentDevice current(device_);
    kernel_.reset();
    memory_ = DeviceBuffer();
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }
  void UseWorkspace(void* workspace) override {
    if (workspace_bytes_ > 0) kernel_->memory().Place(workspace);
  }
  void UseBias(const float* bias) override { kernel_->UseBias(bias); }

  absl::Status Run(const float* x, const float* k, float* y,
                   Stream stream) override {
    const CurrentDevice current(device_);
    RETURN_IF_ERROR(current.status());
    return ToStatus(kernel_->Run(x, k, y, stream));
  }

  int64_t filter_bytes() const override { return kernel_->filter_bytes(); }
  absl::Status PrepareFilters(const float* k, void* filters,
                              Stream stream) override {
    const CurrentDevice current(device_);
    RETURN_IF_ERROR(current.status());
    return ToStatus(kernel_->PrepareFilters(k, filters, stream));
  }
  absl::Status RunPrepared(const float* x, const void* filters, float* y,
                           Stream stream) override {
    const CurrentDevice current(device_);
    RETURN_IF_ERROR(current.status());
    return ToStatus(kernel_->RunPrepared(x, filters, y, stream));
  }

 private:
  const int device_;
  const int64_t workspace_bytes_;  // of the caller's workspace
  std::unique_ptr<Kernel> kernel_;
  DeviceBuffer memory_;  // otherwise
};

// `reject` says why a kernel does not take something, or null. It tells no
// errors: where CUDA refuses it a call, it takes that for something that the
// device lacks. So a reason counts if the device can be asked and it is given
// again.
template <typename Reject>
absl::Status StatusOf(const Reject& reject) {
  if (reject() == nullptr) return absl::OkStatus();
  DeviceLimits limits;
  RETURN_IF_ERROR(ToStatus(AskLimits(&limits)));
  const char* const reason = reject();
  return reason == nullptr ? absl::OkStatus()
                           : absl::UnimplementedError(reason);
}

}  // namespace

absl::Status Supports(const KernelVariant& kernel, const Problem& problem,
                      int device) {
  const CurrentDevice current(device);
  RETURN_IF_ERROR(current.status());
  return StatusOf([&] { return kernel.reject(problem); });
}

absl::Status Fuses(const KernelVariant& kernel, const Problem& problem,
                   const Epilogue& epilogue, int device) {
  const CurrentDevice current(device);
  RETURN_IF_ERROR(current.status());
  return StatusOf([&] { return kernel.reject_epilogue(problem, epilogue); });
}

absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution(
    const KernelVariant& kernel, const Problem& problem,
    const Epilogue& epilogue, const Resources& resources) {
  const CurrentDevice current(resources.device);
  RETURN_IF_ERROR(current.status());
  Error error;
  Kernel* const made = kernel.make(problem, epilogue, &error);
  return WrapKernel(made, error, resources);
}

absl::StatusOr<std::unique_ptr<Convolution>> MakePadded(
    const KernelVariant& kernel, const Problem& problem,
    const Epilogue& epilogue, const Inset& inset, const Resources& resources) {
  const CurrentDevice current(resources.device);
  RETURN_IF_ERROR(current.status());
  Error error;
  Kernel* const made = kernel.make_padded(problem, epilogue, inset, &error);
  return WrapKernel(made, error, resources);
}

absl::StatusOr<double> EstimateNs(const KernelVariant& kernel,
                                  const Problem& problem, int device) {
  ASSIGN_OR_RETURN(const DeviceLimits limits, FindLimits(device));
  // Plans count within an image in 32 bits.
  const char* const reason = RejectHugeImages(problem);
  if (reason != nullptr) return absl::UnimplementedError(reason);
  const double ns = kernel.estimate_ns(problem, limits);
  if (ns < 0) return absl::UnimplementedError("there is no plan");
  return ns;
}

void AddEstimate(const KernelVariant& kernel, const Problem& problem,
                 const DeviceLimits& limits,
                 std::map<std::string, double>& estimates) {
  if (!IsCandidate(kernel)) return;
  const double ns = kernel.estimate_ns(problem, limits);
  if (ns >= 0) estimates[kernel.name] = ns;
}

Variant Describe(const KernelVariant& kernel) {
  Variant variant = {};
  variant.name = kernel.name;
  variant.backend = Backend::kCuda;
  variant.accuracy = kernel.accuracy;
  variant.track = kernel.track;
  variant.summary = kernel.summary;
  variant.reason = kernel.reason;
  variant.detour = kernel.detour;
  variant.exact_on_integers = kernel.exact_on_integers;
  variant.fewest_pooled_images = kernel.fewest_pooled_images;
  return variant;
}

bool IsCandidate(const KernelVariant& kernel) {
  return kernel.estimate_ns != nullptr;
}

bool HasEpilogues(const KernelVariant& kernel) {
  return kernel.reject_epilogue != nullptr;
}

bool LoadsPadding(const KernelVariant& kernel) {
  return kernel.make_padded != nullptr;
}

absl::StatusOr<std::unique_ptr<Convolution>> WrapKernel(
    Kernel* kernel, const Error& error, const Resources& resources) {
  std::unique_ptr<Kernel> owned(kernel);
  RETURN_IF_ERROR(ToStatus(error));
  DeviceBuffer memory;
  const int64_t bytes = kernel->memory().bytes();
  if (bytes > 0 && !resources.callers_workspace) {
    ASSIGN_OR_RETURN(memory, DeviceBuffer::Allocate(bytes));
    kernel->memory().Place(memory.data());
  }
  return std::make_unique<KernelConvolution>(std::move(owned),
                                             std::move(memory), resources);
}

absl::StatusOr<DeviceLimits> FindLimits(int device) {
  const CurrentDevice current(device);
  RETURN_IF_ERROR(current.status());
  DeviceLimits limits;
  RETURN_IF_ERROR(ToStatus(AskLimits(&limits)));
  return limits;
}

}  // namespace convlab::cuda
