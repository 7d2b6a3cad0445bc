// Asks for 2048 threads in a block and does not look at the error.
// Caught: the kernel never ran.
#include "convolve.cuh"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  ConvolveKernel<<<dim3(B, M), 2048, 0, stream>>>(x, k, y, C, H, W, K);
}
