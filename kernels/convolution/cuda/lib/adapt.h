// Makes a Variant, as the rest of the project knows it, of a KernelVariant.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_ADAPT_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_ADAPT_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/cuda/lib/device_limits.h"

namespace convlab::cuda {

class Kernel;
struct Error;
struct Inset;
struct KernelVariant;

absl::Status Supports(const KernelVariant& kernel, const Problem& problem,
                      int device);
absl::Status Fuses(const KernelVariant& kernel, const Problem& problem,
                   const Epilogue& epilogue, int device);
absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution(
    const KernelVariant& kernel, const Problem& problem,
    const Epilogue& epilogue, const Resources& resources);
absl::StatusOr<std::unique_ptr<Convolution>> MakePadded(
    const KernelVariant& kernel, const Problem& problem,
    const Epilogue& epilogue, const Inset& inset, const Resources& resources);
absl::StatusOr<double> EstimateNs(const KernelVariant& kernel,
                                  const Problem& problem, int device);
// Adds the kernel's estimate by its name, if it has one for the problem.
void AddEstimate(const KernelVariant& kernel, const Problem& problem,
                 const DeviceLimits& limits,
                 std::map<std::string, double>& estimates);
// Everything but the functions.
Variant Describe(const KernelVariant& kernel);
bool IsCandidate(const KernelVariant& kernel);
bool HasEpilogues(const KernelVariant& kernel);
bool LoadsPadding(const KernelVariant& kernel);

// Takes ownership of a kernel that was made for the device, which is the
// current one, or returns the error that it was made with. Allocates its
// memory, unless the caller of Run provides it.
absl::StatusOr<std::unique_ptr<Convolution>> WrapKernel(
    Kernel* kernel, const Error& error, const Resources& resources);

// The limits of the device; Unavailable if it cannot be asked.
absl::StatusOr<DeviceLimits> FindLimits(int device);

// A Variant's functions take no variant, so each kernel gets a set of its own.
template <const KernelVariant& kernel>
Variant Adapt(bool recordable = true) {
  Variant variant = Describe(kernel);
  variant.recordable = recordable;
  variant.supports = [](const Problem& problem, const Resources& resources) {
    return Supports(kernel, problem, resources.device);
  };
  variant.make = [](const Problem& problem, const Epilogue& epilogue,
                    const Resources& resources) {
    return MakeConvolution(kernel, problem, epilogue, resources);
  };
  if (HasEpilogues(kernel)) {
    variant.fuses = [](const Problem& problem, const Epilogue& epilogue,
                       const Resources& resources) {
      return Fuses(kernel, problem, epilogue, resources.device);
    };
  }
  if (LoadsPadding(kernel)) {
    variant.make_padded = [](const Problem& problem, const Epilogue& epilogue,
                             const Inset& inset, const Resources& resources) {
      return MakePadded(kernel, problem, epilogue, inset, resources);
    };
  }
  if (IsCandidate(kernel)) {
    variant.estimate_ns = [](const Problem& problem,
                             const Resources& resources) {
      return EstimateNs(kernel, problem, resources.device);
    };
  }
  return variant;
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_ADAPT_H_
