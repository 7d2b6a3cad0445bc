// The course's way with streams: copies and kernels overlap in the prolog,
// which writes the result, and the op has nothing left to do.
// Nothing to catch: right, but its op time is no result.
#include <algorithm>

#include "convolve.cuh"
#include "gpu-new-forward.h"

__host__ void GPUInterface::conv_forward_gpu_prolog(
    const float* host_y, const float* host_x, const float* host_k,
    float** device_y_ptr, float** device_x_ptr, float** device_k_ptr,
    const int B, const int M, const int C, const int H, const int W,
    const int K) {
  constexpr int kStreams = 4;
  cudaStream_t streams[kStreams];
  for (cudaStream_t& stream : streams) cudaStreamCreate(&stream);
  cudaMalloc(device_x_ptr, InputBytes(B, C, H, W));
  cudaMalloc(device_k_ptr, FilterBytes(C, M, K));
  cudaMalloc(device_y_ptr, OutputBytes(B, H, W, M, K));
  cudaMemcpy(*device_k_ptr, host_k, FilterBytes(C, M, K),
             cudaMemcpyHostToDevice);
  const int images = (B + kStreams - 1) / kStreams;
  for (int s = 0, b = 0; b < B; ++s, b += images) {
    const int count = std::min(images, B - b);
    float* const x = *device_x_ptr + InputBytes(b, C, H, W) / sizeof(float);
    float* const y = *device_y_ptr + OutputBytes(b, H, W, M, K) / sizeof(float);
    cudaMemcpyAsync(x, host_x + InputBytes(b, C, H, W) / sizeof(float),
                    InputBytes(count, C, H, W), cudaMemcpyHostToDevice,
                    streams[s]);
    Convolve(x, *device_k_ptr, y, count, C, H, W, M, K, streams[s]);
    cudaMemcpyAsync(
        const_cast<float*>(host_y) + OutputBytes(b, H, W, M, K) / sizeof(float),
        y, OutputBytes(count, H, W, M, K), cudaMemcpyDeviceToHost, streams[s]);
  }
  cudaDeviceSynchronize();
  for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
}

__host__ void GPUInterface::conv_forward_gpu(
    float* device_y, const float* device_x, const float* device_k, const int B,
    const int M, const int C, const int H, const int W, const int K) {
  return;
}

__host__ void GPUInterface::conv_forward_gpu_epilog(
    float* host_y, float* device_y, float* device_x, float* device_k,
    const int B, const int M, const int C, const int H, const int W,
    const int K) {
  cudaFree(device_x);
  cudaFree(device_k);
  cudaFree(device_y);
}
