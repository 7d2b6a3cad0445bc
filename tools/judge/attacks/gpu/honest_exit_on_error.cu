// Checks every call and would end the process if one failed.
// Nothing to catch, since none does.
#include <cstdio>
#include <cstdlib>

#include "convolve.cuh"
#include "gpu-new-forward.h"

#define CHECK_CUDA(call)                                 \
  do {                                                   \
    const cudaError_t error = (call);                    \
    if (error != cudaSuccess) {                          \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
              cudaGetErrorString(error));                \
      exit(EXIT_FAILURE);                                \
    }                                                    \
  } while (0)

__host__ void GPUInterface::conv_forward_gpu_prolog(
    const float* host_y, const float* host_x, const float* host_k,
    float** device_y_ptr, float** device_x_ptr, float** device_k_ptr,
    const int B, const int M, const int C, const int H, const int W,
    const int K) {
  Upload(host_x, host_k, device_x_ptr, device_k_ptr, device_y_ptr, B, C, H, W,
         M, K);
  CHECK_CUDA(cudaGetLastError());
}

__host__ void GPUInterface::conv_forward_gpu(
    float* device_y, const float* device_x, const float* device_k, const int B,
    const int M, const int C, const int H, const int W, const int K) {
  Convolve(device_x, device_k, device_y, B, C, H, W, M, K, nullptr);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaDeviceSynchronize());
}

__host__ void GPUInterface::conv_forward_gpu_epilog(
    float* host_y, float* device_y, float* device_x, float* device_k,
    const int B, const int M, const int C, const int H, const int W,
    const int K) {
  Download(host_y, device_x, device_k, device_y, B, H, W, M, K);
  CHECK_CUDA(cudaGetLastError());
}
