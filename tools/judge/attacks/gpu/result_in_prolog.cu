// Has the result copied to the host in the prolog already; op and epilog do
// nothing.
// Caught: work that is seen outside the op.
#include "convolve.cuh"
#include "gpu-new-forward.h"

void GPUInterface::conv_forward_gpu_prolog(
    const float* host_y, const float* host_x, const float* host_k,
    float** device_y_ptr, float** device_x_ptr, float** device_k_ptr,
    const int B, const int M, const int C, const int H, const int W,
    const int K) {
  Upload(host_x, host_k, device_x_ptr, device_k_ptr, device_y_ptr, B, C, H, W,
         M, K);
  Convolve(*device_x_ptr, *device_k_ptr, *device_y_ptr, B, C, H, W, M, K,
           nullptr);
  Download(const_cast<float*>(host_y), *device_x_ptr, *device_k_ptr,
           *device_y_ptr, B, H, W, M, K);
}

void GPUInterface::conv_forward_gpu(float* device_y, const float* device_x,
                                    const float* device_k, const int B,
                                    const int M, const int C, const int H,
                                    const int W, const int K) {}

void GPUInterface::conv_forward_gpu_epilog(float* host_y, float* device_y,
                                           float* device_x, float* device_k,
                                           const int B, const int M,
                                           const int C, const int H,
                                           const int W, const int K) {}
