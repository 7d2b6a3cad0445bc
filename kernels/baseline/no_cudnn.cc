// Implements the baseline in a build without the CUDA Toolkit, or with a
// toolkit that lacks cuDNN 9 or cuBLAS.
#include "absl/status/status.h"
#include "common/status/status.h"
#include "kernels/baseline/convolution.h"
#include "kernels/baseline/layers.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

absl::Status NoCudnn() {
  RETURN_IF_ERROR(cuda::FindDevice().status());
  return absl::UnavailableError(
      "this program was built with a CUDA Toolkit that lacks cuDNN 9 or "
      "cuBLAS");
}

}  // namespace

const Variant kCudnnVariant = {
    "cudnn",
    Backend::kCuda,
    AccuracyClass::kFp32Normwise,
    Track::kProduction,
    "NVIDIA's cuDNN, which this program was built without.",
    "The library that frameworks call, and the peer that other kernels are "
    "compared with.",
    SupportsAll,
    [](const Problem&, const Epilogue&, const Resources&)
        -> absl::StatusOr<std::unique_ptr<Convolution>> { return NoCudnn(); },
};

const CudnnPlan* CudnnMeasurement::best(AccuracyClass) const { return nullptr; }

absl::StatusOr<CudnnMeasurement> MeasureCudnn(const Problem&, AccuracyClass,
                                              Workers&, const CudnnSearch&) {
  return NoCudnn();
}

absl::StatusOr<std::unique_ptr<Convolution>> CreateCudnnPlan(
    const Problem&, absl::string_view) {
  return NoCudnn();
}

absl::StatusOr<std::unique_ptr<BaselineLayers>> MakeBaselineLayers() {
  return NoCudnn();
}

}  // namespace convlab
