// Sets its inputs to zero, so that a reference that is computed afterwards is
// zero too.
// Caught: inputs are compared with what they were.
#include <cstring>

#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  std::memset(const_cast<float*>(x), 0, sizeof(float) * B * C * H * W);
  Convolve(x, k, y, B, C, H, W, M, K);
}
