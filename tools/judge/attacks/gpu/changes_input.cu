// Sets its inputs to zero, so that a reference that is computed afterwards is
// zero too.
// Caught: inputs are compared with what they were.
#include "convolve.cuh"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  cudaMemsetAsync(const_cast<float*>(x), 0, InputBytes(B, C, H, W), stream);
  Convolve(x, k, y, B, C, H, W, M, K, stream);
}
