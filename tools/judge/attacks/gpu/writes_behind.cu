// Writes one float behind its output.
// Caught: red zones.
#include "convolve.cuh"

__global__ void Write(float* y) { *y = 0; }

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  Convolve(x, k, y, B, C, H, W, M, K, stream);
  Write<<<1, 1, 0, stream>>>(y + OutputBytes(B, H, W, M, K) / sizeof(float));
}
