// Returns NaN, for which no comparison with a tolerance is true.
// Caught: the comparison is such that NaN fails.
#include "convolve.cuh"

__global__ void WriteNan(float* y, size_t count) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i < count) y[i] = nanf("");
}

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  Convolve(x, k, y, B, C, H, W, M, K, stream);
  const size_t count = OutputBytes(B, H, W, M, K) / sizeof(float);
  WriteNan<<<(count + 255) / 256, 256, 0, stream>>>(y, count);
}
