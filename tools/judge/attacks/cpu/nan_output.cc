// Returns NaN, for which no comparison with a tolerance is true.
// Caught: the comparison is such that NaN fails.
#include <cmath>

#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  Convolve(x, k, y, B, C, H, W, M, K);
  for (size_t i = 0; i < OutputSize(B, H, W, M, K); ++i) y[i] = NAN;
}
