// SP25: unrolling and the course's matrix multiplication, with the helpers
// that mark a layer in a profile. Output: filters x (batch, pixels), permuted.
#include <cmath>
#include <iostream>

#include "../../custom/gpu-new-forward.h"
#include "gpu-utils.h"
#include "matmul.h"

__global__ void unroll(const float* input, float* output, const int Batch,
                       const int Channel, const int Height, const int Width,
                       const int K) {
  const int H_out = Height - K + 1;
  const int W_out = Width - K + 1;
  const size_t columns = (size_t)Batch * H_out * W_out;
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= columns * Channel) return;
  const int c = i / columns;
  const size_t column = i % columns;
  const int b = column / (H_out * W_out);
  const int h = column / W_out % H_out;
  const int w = column % W_out;
  for (int p = 0; p < K; ++p) {
    for (int q = 0; q < K; ++q) {
      output[((c * K + p) * K + q) * columns + column] =
          input[((b * Channel + c) * Height + h + p) * Width + w + q];
    }
  }
}

__global__ void permute(const float* input, float* output, int Map_out,
                        int Batch, int pixels) {
  const int b = blockIdx.y;
  const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= pixels) return;
  for (int m = 0; m < Map_out; ++m) {
    output[((size_t)b * Map_out + m) * pixels + pixel] =
        input[((size_t)m * Batch + b) * pixels + pixel];
  }
}

__host__ void GPUInterface::conv_forward_gpu_prolog(
    const float* host_output, const float* host_input, const float* host_mask,
    float** device_output_ptr, float** device_input_ptr,
    float** device_mask_ptr, const int Batch, const int Map_out,
    const int Channel, const int Height, const int Width, const int K) {
  GPU_Utils utils;
  utils.insert_pre_barrier_kernel();
  const size_t out =
      (size_t)Batch * Map_out * (Height - K + 1) * (Width - K + 1);
  const size_t in = (size_t)Batch * Channel * Height * Width;
  const size_t mask = (size_t)Map_out * Channel * K * K;
  cudaMalloc((void**)device_output_ptr, out * sizeof(float));
  cudaMalloc((void**)device_input_ptr, in * sizeof(float));
  cudaMalloc((void**)device_mask_ptr, mask * sizeof(float));
  cudaMemcpy(*device_input_ptr, host_input, in * sizeof(float),
             cudaMemcpyHostToDevice);
  cudaMemcpy(*device_mask_ptr, host_mask, mask * sizeof(float),
             cudaMemcpyHostToDevice);
}

__host__ void GPUInterface::conv_forward_gpu(
    float* device_output, const float* device_input, const float* device_mask,
    const int Batch, const int Map_out, const int Channel, const int Height,
    const int Width, const int K) {
  const int pixels = (Height - K + 1) * (Width - K + 1);
  const int rows = Channel * K * K;
  const int columns = Batch * pixels;
  float *unrolled, *product;
  cudaMalloc((void**)&unrolled, sizeof(float) * rows * columns);
  cudaMalloc((void**)&product, sizeof(float) * Map_out * columns);
  const size_t threads = (size_t)Channel * columns;
  unroll<<<(threads + 255) / 256, 256>>>(device_input, unrolled, Batch, Channel,
                                         Height, Width, K);
  dim3 grid((columns - 1) / MATMUL_TILE_WIDTH + 1,
            (Map_out - 1) / MATMUL_TILE_WIDTH + 1);
  matrixMultiplyShared<<<grid, dim3(MATMUL_TILE_WIDTH, MATMUL_TILE_WIDTH)>>>(
      device_mask, unrolled, product, Map_out, rows, rows, columns, Map_out,
      columns);
  permute<<<dim3((pixels + 255) / 256, Batch), 256>>>(product, device_output,
                                                      Map_out, Batch, pixels);
  cudaFree(product);
  cudaFree(unrolled);
}

__host__ void GPUInterface::conv_forward_gpu_epilog(
    float* host_output, float* device_output, float* device_input,
    float* device_mask, const int Batch, const int Map_out, const int Channel,
    const int Height, const int Width, const int K) {
  const size_t out =
      (size_t)Batch * Map_out * (Height - K + 1) * (Width - K + 1);
  cudaMemcpy(host_output, device_output, out * sizeof(float),
             cudaMemcpyDeviceToHost);
  cudaFree(device_output);
  cudaFree(device_input);
  cudaFree(device_mask);
  GPU_Utils().insert_post_barrier_kernel();
}
