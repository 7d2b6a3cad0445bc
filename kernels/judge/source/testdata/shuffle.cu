// Old CUDA: a shuffle without a mask; one warp for each output.
#include <cuda_runtime.h>

__global__ void warps(const float* x, const float* k, float* y, int C, int H,
                      int W, int K) {
  const int height = H - K + 1;
  const int width = W - K + 1;
  const int b = blockIdx.x;
  const int m = blockIdx.y;
  for (int i = threadIdx.y; i < height * width; i += blockDim.y) {
    float sum = 0;
    for (int j = threadIdx.x; j < C * K * K; j += 32) {
      const int c = j / (K * K);
      const int row = i / width + j / K % K;
      sum += x[((b * C + c) * H + row) * W + i % width + j % K] *
             k[m * C * K * K + j];
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) {
      sum += __shfl_down(sum, lanes);
    }
    if (threadIdx.x == 0) y[(b * gridDim.y + m) * height * width + i] = sum;
  }
}

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  warps<<<dim3(B, M), dim3(32, 8), 0, stream>>>(x, k, y, C, H, W, K);
}
