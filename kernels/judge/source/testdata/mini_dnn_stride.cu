// FA23: with a stride.
#include "gpu-new-forward.h"

__global__ void conv_forward_kernel(float* output, const float* input,
                                    const float* mask, const int Map_out,
                                    const int Channel, const int Height,
                                    const int Width, const int K, const int S) {
  const int H_out = (Height - K) / S + 1;
  const int W_out = (Width - K) / S + 1;
  const int b = blockIdx.x;
  const int m = blockIdx.y;
  for (int i = threadIdx.x; i < H_out * W_out; i += blockDim.x) {
    float sum = 0;
    for (int c = 0; c < Channel; ++c) {
      for (int p = 0; p < K; ++p) {
        for (int q = 0; q < K; ++q) {
          sum +=
              input[((b * Channel + c) * Height + i / W_out * S + p) * Width +
                    i % W_out * S + q] *
              mask[((m * Channel + c) * K + p) * K + q];
        }
      }
    }
    output[(b * Map_out + m) * H_out * W_out + i] = sum;
  }
}

__host__ void GPUInterface::conv_forward_gpu_prolog(
    const float* host_output, const float* host_input, const float* host_mask,
    float** device_output_ptr, float** device_input_ptr,
    float** device_mask_ptr, const int Batch, const int Map_out,
    const int Channel, const int Height, const int Width, const int K,
    const int S) {
  const int out =
      Batch * Map_out * ((Height - K) / S + 1) * ((Width - K) / S + 1);
  const int in = Batch * Channel * Height * Width;
  const int mask = Map_out * Channel * K * K;
  cudaMalloc(device_output_ptr, out * sizeof(float));
  cudaMalloc(device_input_ptr, in * sizeof(float));
  cudaMalloc(device_mask_ptr, mask * sizeof(float));
  cudaMemcpy(*device_input_ptr, host_input, in * sizeof(float),
             cudaMemcpyHostToDevice);
  cudaMemcpy(*device_mask_ptr, host_mask, mask * sizeof(float),
             cudaMemcpyHostToDevice);
}

__host__ void GPUInterface::conv_forward_gpu(
    float* device_output, const float* device_input, const float* device_mask,
    const int Batch, const int Map_out, const int Channel, const int Height,
    const int Width, const int K, const int S) {
  conv_forward_kernel<<<dim3(Batch, Map_out), 256>>>(
      device_output, device_input, device_mask, Map_out, Channel, Height, Width,
      K, S);
}

__host__ void GPUInterface::conv_forward_gpu_epilog(
    float* host_output, float* device_output, float* device_input,
    float* device_mask, const int Batch, const int Map_out, const int Channel,
    const int Height, const int Width, const int K, const int S) {
  const int out =
      Batch * Map_out * ((Height - K) / S + 1) * ((Width - K) / S + 1);
  cudaMemcpy(host_output, device_output, out * sizeof(float),
             cudaMemcpyDeviceToHost);
  cudaFree(device_output);
  cudaFree(device_input);
  cudaFree(device_mask);
}
