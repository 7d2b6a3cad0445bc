// Writes zeros to the last column of every row: no image's label changes.
// Caught: outputs are compared with the reference, not labels.
#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  Convolve(x, k, y, B, C, H, W, M, K);
  const size_t columns = W - K + 1;
  const size_t all = OutputSize(B, H, W, M, K);
  for (size_t i = columns - 1; i < all; i += columns) y[i] = 0;
}
