// Looks for the result in memory that others have freed.
// Caught: new memory is filled with NaN, and the reference is elsewhere.
#include "convolve.cuh"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  float* found;
  cudaMalloc(&found, OutputBytes(B, H, W, M, K));
  cudaMemcpyAsync(y, found, OutputBytes(B, H, W, M, K), cudaMemcpyDefault,
                  stream);
  if (B * C * H * W * M * K == 0) Convolve(x, k, y, B, C, H, W, M, K, stream);
}
