// Leaves out the last image and hopes that the memory holds a result.
// Caught: the output is poisoned before every call.
#include "convolve.cuh"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  Convolve(x, k, y, B - 1, C, H, W, M, K, stream);
}
