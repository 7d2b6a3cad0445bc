// Fails an assertion in device code.
// Caught: a crash is a verdict about this kernel alone.
#include <cassert>

#include "convolve.cuh"

__global__ void Check(int B) { assert(B < 0); }

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  Check<<<1, 1, 0, stream>>>(B);
  Convolve(x, k, y, B, C, H, W, M, K, stream);
}
