// Results of CUDA calls in .cc files, as error.h has them for .cu files.
#ifndef KERNELS_CUDA_CUDA_STATUS_H_
#define KERNELS_CUDA_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {

// An error names the call, whose text is static.
inline absl::Status CudaStatus(cudaError_t code, const char* call) {
  return ToStatus(Check(code, call));
}

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_CUDA_STATUS_H_
