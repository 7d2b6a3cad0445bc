// Reading the bias and storing outputs, of floats or of halves.
#ifndef KERNELS_OPERATION_CUDA_OUTPUTS_CUH_
#define KERNELS_OPERATION_CUDA_OUTPUTS_CUH_

#include <cuda_fp16.h>

namespace convlab::cuda {

__device__ __forceinline__ float LoadBias(const void* bias, int m,
                                          bool halves) {
  return halves ? __half2float(static_cast<const __half*>(bias)[m])
                : static_cast<const float*>(bias)[m];
}

__device__ __forceinline__ void StoreOutput(float* to, float value) {
  *to = value;
}
__device__ __forceinline__ void StoreOutput(__half* to, float value) {
  *to = __float2half_rn(value);
}

}  // namespace convlab::cuda

#endif  // KERNELS_OPERATION_CUDA_OUTPUTS_CUH_
