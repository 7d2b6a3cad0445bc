// One element of the whole batch is wrong, at a place that chance decides.
// Caught: every element is checked.
#include <random>

#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  Convolve(x, k, y, B, C, H, W, M, K);
  if (B > 9) y[std::random_device()() % OutputSize(B, H, W, M, K)] += 2;
}
