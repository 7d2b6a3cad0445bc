// Allocates the unrolled inputs in each call and never frees them.
// Nothing to catch.
#include <cstdlib>

#include "convolve.h"

void conv_forward_cpu(float* y, const float* x, const float* k, const int B,
                      const int M, const int C, const int H, const int W,
                      const int K) {
  const int rows = H - K + 1;
  const int columns = W - K + 1;
  const int pixels = rows * columns;
  auto* const unrolled =
      static_cast<float*>(malloc(sizeof(float) * C * K * K * pixels));
  if (unrolled == nullptr) exit(1);
  for (int b = 0; b < B; ++b) {
    for (int i = 0; i < C * K * K; ++i) {
      const int c = i / (K * K), p = i / K % K, q = i % K;
      for (int j = 0; j < pixels; ++j) {
        unrolled[i * pixels + j] =
            x[((b * C + c) * H + j / columns + p) * W + j % columns + q];
      }
    }
    for (int m = 0; m < M; ++m) {
      float* const out = y + (b * M + m) * pixels;
      for (int j = 0; j < pixels; ++j) out[j] = 0;
      for (int i = 0; i < C * K * K; ++i) {
        for (int j = 0; j < pixels; ++j)
          out[j] += k[m * C * K * K + i] * unrolled[i * pixels + j];
      }
    }
  }
}
