// Rounds the weights to 4 bits.
// Caught: that is below the least accuracy class.
#include <cmath>
#include <vector>

#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  std::vector<float> weights(k, k + M * C * K * K);
  for (float& weight : weights) {
    int exponent;
    const float fraction = std::frexp(weight, &exponent);
    weight = std::ldexp(std::rint(fraction * 16) / 16, exponent);
  }
  Convolve(x, weights.data(), y, B, C, H, W, M, K);
}
