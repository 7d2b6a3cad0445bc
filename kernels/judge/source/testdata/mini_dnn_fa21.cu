// FA21: prolog, kernel, epilog. Filters in constant memory, and the deviations
// of published files: no const in the prolog, __restrict__, a helper member,
// and macros of common names.
#include <cmath>
#include <iostream>

#include "gpu-new-forward.h"

#define call(x) x
#define batch 4
#define filters 7
#define TILE_WIDTH 16

__constant__ float weights[10000];

__global__ void conv_forward_kernel(float* __restrict__ y,
                                    const float* __restrict__ x, const int M,
                                    const int C, const int H, const int W,
                                    const int K) {
  extern __shared__ float tile[];
  const int H_out = H - K + 1;
  const int W_out = W - K + 1;
  const int X_tile = TILE_WIDTH + K - 1;
  const int W_grid = (W_out - 1) / TILE_WIDTH + 1;
  const int h0 = blockIdx.z / W_grid * TILE_WIDTH;
  const int w0 = blockIdx.z % W_grid * TILE_WIDTH;
  const int m = blockIdx.y;
  const int b = blockIdx.x;
  float sum = 0;
  for (int c = 0; c < C; ++c) {
    for (int i = threadIdx.y; i < X_tile; i += TILE_WIDTH) {
      for (int j = threadIdx.x; j < X_tile; j += TILE_WIDTH) {
        const bool inside = h0 + i < H && w0 + j < W;
        tile[i * X_tile + j] =
            inside ? x[((b * C + c) * H + h0 + i) * W + w0 + j] : 0.0f;
      }
    }
    __syncthreads();
    for (int p = 0; p < K; ++p) {
      for (int q = 0; q < K; ++q) {
        sum += tile[(threadIdx.y + p) * X_tile + threadIdx.x + q] *
               weights[((m * C + c) * K + p) * K + q];
      }
    }
    __syncthreads();
  }
  const int h = h0 + threadIdx.y;
  const int w = w0 + threadIdx.x;
  if (h < H_out && w < W_out) y[((b * M + m) * H_out + h) * W_out + w] = sum;
}

__host__ void GPUInterface::check(cudaError_t error) {
  if (error != cudaSuccess) {
    std::cout << "CUDA error: " << cudaGetErrorString(error) << std::endl;
    exit(-1);
  }
}

__host__ void GPUInterface::conv_forward_gpu_prolog(
    float* host_y, float* host_x, float* host_k, float** device_y_ptr,
    float** device_x_ptr, float** device_k_ptr, int B, int M, int C, int H,
    int W, int K) {
  check(cudaMalloc(device_y_ptr,
                   sizeof(float) * B * M * (H - K + 1) * (W - K + 1)));
  check(cudaMalloc(device_x_ptr, sizeof(float) * B * C * H * W));
  check(cudaMemcpy(*device_x_ptr, host_x, sizeof(float) * B * C * H * W,
                   cudaMemcpyHostToDevice));
  check(cudaMemcpyToSymbol(weights, host_k, sizeof(float) * M * C * K * K));
}

__host__ void GPUInterface::conv_forward_gpu(float* __restrict__ device_y,
                                             const float* __restrict__ device_x,
                                             const float* device_k, const int B,
                                             const int M, const int C,
                                             const int H, const int W,
                                             const int K) {
  const int tiles = ((H - K) / TILE_WIDTH + 1) * ((W - K) / TILE_WIDTH + 1);
  const size_t bytes =
      sizeof(float) * (TILE_WIDTH + K - 1) * (TILE_WIDTH + K - 1);
  conv_forward_kernel<<<dim3(B, M, tiles), dim3(TILE_WIDTH, TILE_WIDTH),
                        bytes>>>(device_y, device_x, M, C, H, W, K);
}

__host__ void GPUInterface::conv_forward_gpu_epilog(
    float* host_y, float* device_y, float* device_x, float* device_k,
    const int B, const int M, const int C, const int H, const int W,
    const int K) {
  check(cudaMemcpy(host_y, device_y,
                   sizeof(float) * B * M * (H - K + 1) * (W - K + 1),
                   cudaMemcpyDeviceToHost));
  cudaFree(device_y);
  cudaFree(device_x);
}
