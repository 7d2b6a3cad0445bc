// A kernel that never ends.
// Caught: calls have a limit of time.
#include "convolve.cuh"

__global__ void Spin(volatile float* y) {
  while (y[0] != 12345.0F) {
  }
}

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  Spin<<<1, 1, 0, stream>>>(y);
  Convolve(x, k, y, B, C, H, W, M, K, stream);
}
