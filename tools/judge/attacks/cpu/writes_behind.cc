// Writes one float behind its output.
// Caught: red zones.
#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  Convolve(x, k, y, B, C, H, W, M, K);
  y[OutputSize(B, H, W, M, K)] = 0;
}
