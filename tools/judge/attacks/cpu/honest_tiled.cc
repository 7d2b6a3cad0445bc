// Blocks of filters and rows, and a local function named like a rule breaker.
// Nothing to catch.
#include <algorithm>
#include <vector>

static void fork(int* count) { ++*count; }

void conv_forward_cpu(float* y, const float* x, const float* k, const int B,
                      const int M, const int C, const int H, const int W,
                      const int K) {
  const int rows = H - K + 1;
  const int columns = W - K + 1;
  int tiles = 0;
  std::vector<float> sums(4 * columns);
  for (int b = 0; b < B; ++b) {
    for (int m0 = 0; m0 < M; m0 += 4) {
      const int filters = std::min(4, M - m0);
      for (int h = 0; h < rows; ++h, fork(&tiles)) {
        std::fill(sums.begin(), sums.end(), 0.0F);
        for (int c = 0; c < C; ++c)
          for (int p = 0; p < K; ++p)
            for (int q = 0; q < K; ++q)
              for (int m = 0; m < filters; ++m)
                for (int w = 0; w < columns; ++w)
                  sums[m * columns + w] +=
                      x[((b * C + c) * H + h + p) * W + w + q] *
                      k[(((m0 + m) * C + c) * K + p) * K + q];
        for (int m = 0; m < filters; ++m)
          std::copy_n(&sums[m * columns], columns,
                      &y[((b * M + m0 + m) * rows + h) * columns]);
      }
    }
  }
}
