// The convolution that honest files compute, and the others where it serves
// them.
#ifndef CONVOLVE_H_
#define CONVOLVE_H_

#include <cstddef>

// The number of elements of the output.
inline size_t OutputSize(int B, int H, int W, int M, int K) {
  return size_t{1} * B * M * (H - K + 1) * (W - K + 1);
}

// y[b,m,h,w] = sum of x[b,c,h+p,w+q] * k[m,c,p,q].
inline void Convolve(const float* x, const float* k, float* y, int B, int C,
                     int H, int W, int M, int K) {
  const int rows = H - K + 1;
  const int columns = W - K + 1;
  for (size_t b = 0; b < size_t(B); ++b) {
    for (int m = 0; m < M; ++m) {
      for (int h = 0; h < rows; ++h) {
        float* const out = y + ((b * M + m) * rows + h) * columns;
        for (int w = 0; w < columns; ++w) out[w] = 0;
        for (int c = 0; c < C; ++c) {
          for (int p = 0; p < K; ++p) {
            const float* const in = x + ((b * C + c) * H + h + p) * W;
            for (int q = 0; q < K; ++q) {
              const float factor = k[((m * C + c) * K + p) * K + q];
              for (int w = 0; w < columns; ++w) out[w] += in[w + q] * factor;
            }
          }
        }
      }
    }
  }
}

#endif  // CONVOLVE_H_
