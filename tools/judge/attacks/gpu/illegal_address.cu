// Reads a terabyte behind its input.
// Caught: a crash is a verdict about this kernel alone.
#include "convolve.cuh"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  Convolve(x + (size_t{1} << 38), k, y, B, C, H, W, M, K, stream);
}
