// Asking whether the current device has tensor cores for a kernel, where what
// is prepared for the kernel depends on the answer.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_TENSOR_CORES_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_TENSOR_CORES_H_

#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {

// Whether the current device runs `kernel`, which needs code of compute
// capability 8.0. Not as in RejectWithoutTensorCores, a device that cannot be
// asked is an error: the next answer could be another one.
inline Error AskTensorCores(const void* kernel, bool* runs) {
  *runs = false;
  DeviceLimits limits;
  RETURN_IF_FAILED(AskLimits(&limits));
  if (limits.compute_capability < 80) return {};
  // The driver may have compiled the kernel from an older GPU's code.
  cudaFuncAttributes attributes;
  RETURN_IF_CUDA_ERROR(cudaFuncGetAttributes(&attributes, kernel));
  *runs = attributes.ptxVersion >= 80;
  return {};
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_TENSOR_CORES_H_
