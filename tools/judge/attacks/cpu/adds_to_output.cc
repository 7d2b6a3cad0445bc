// Adds to an output that nobody promised to clear.
// Caught: the output is poisoned; the verdict says what is missing.
#include <vector>

#include "convolve.h"

void conv_forward_cpu(float* y, const float* x, const float* k, const int B,
                      const int M, const int C, const int H, const int W,
                      const int K) {
  std::vector<float> sums(OutputSize(B, H, W, M, K));
  Convolve(x, k, sums.data(), B, C, H, W, M, K);
  for (size_t i = 0; i < sums.size(); ++i) y[i] += sums[i];
}
