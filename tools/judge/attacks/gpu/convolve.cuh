// The convolution that honest files compute, and the others where it serves
// them, with the copies of mini-dnn's prolog and epilog.
#ifndef CONVOLVE_CUH_
#define CONVOLVE_CUH_

#include <cuda_runtime.h>

inline size_t InputBytes(int B, int C, int H, int W) {
  return sizeof(float) * B * C * H * W;
}
inline size_t FilterBytes(int C, int M, int K) {
  return sizeof(float) * M * C * K * K;
}
inline size_t OutputBytes(int B, int H, int W, int M, int K) {
  return sizeof(float) * B * M * (H - K + 1) * (W - K + 1);
}

// One block for each image and filter.
__global__ void ConvolveKernel(const float* x, const float* k, float* y, int C,
                               int H, int W, int K) {
  const int columns = W - K + 1;
  const int pixels = (H - K + 1) * columns;
  const size_t b = blockIdx.x;
  const int m = blockIdx.y;
  for (int i = threadIdx.x; i < pixels; i += blockDim.x) {
    float sum = 0;
    for (int c = 0; c < C; ++c) {
      for (int p = 0; p < K; ++p) {
        for (int q = 0; q < K; ++q) {
          sum += x[((b * C + c) * H + i / columns + p) * W + i % columns + q] *
                 k[((m * C + c) * K + p) * K + q];
        }
      }
    }
    y[(b * gridDim.y + m) * pixels + i] = sum;
  }
}

inline void Convolve(const float* x, const float* k, float* y, int B, int C,
                     int H, int W, int M, int K, cudaStream_t stream) {
  if (B == 0) return;
  ConvolveKernel<<<dim3(B, M), 256, 0, stream>>>(x, k, y, C, H, W, K);
}

inline void Upload(const float* host_x, const float* host_k, float** device_x,
                   float** device_k, float** device_y, int B, int C, int H,
                   int W, int M, int K) {
  cudaMalloc(device_x, InputBytes(B, C, H, W));
  cudaMalloc(device_k, FilterBytes(C, M, K));
  cudaMalloc(device_y, OutputBytes(B, H, W, M, K));
  cudaMemcpy(*device_x, host_x, InputBytes(B, C, H, W), cudaMemcpyHostToDevice);
  cudaMemcpy(*device_k, host_k, FilterBytes(C, M, K), cudaMemcpyHostToDevice);
}

inline void Download(float* host_y, float* device_x, float* device_k,
                     float* device_y, int B, int H, int W, int M, int K) {
  cudaMemcpy(host_y, device_y, OutputBytes(B, H, W, M, K),
             cudaMemcpyDeviceToHost);
  cudaFree(device_x);
  cudaFree(device_k);
  cudaFree(device_y);
}

#endif  // CONVOLVE_CUH_
