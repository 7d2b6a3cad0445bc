// Reads far behind its input.
// Caught: a crash is a verdict about this kernel alone.
#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  Convolve(x + (size_t{1} << 40), k, y, B, C, H, W, M, K);
}
