// Computes integers exactly, since a check might use them, and rounds all other
// weights to 8 bits.
// Caught: the accuracy class is taken from several families of data.
#include <cmath>
#include <vector>

#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  bool integers = true;
  for (int i = 0; i < M * C * K * K; ++i) integers &= k[i] == std::rint(k[i]);
  std::vector<float> weights(k, k + M * C * K * K);
  if (!integers) {
    for (float& weight : weights) {
      int exponent;
      const float fraction = std::frexp(weight, &exponent);
      weight = std::ldexp(std::rint(fraction * 256) / 256, exponent);
    }
  }
  Convolve(x, weights.data(), y, B, C, H, W, M, K);
}
