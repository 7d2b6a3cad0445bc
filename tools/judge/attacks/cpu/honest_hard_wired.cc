// Has the size of the filter hard-wired, as a hundred published files do.
// Nothing to catch: right for the networks whose filters are 5 x 5.
#define FILTER 5

void conv_forward_cpu(float* y, const float* x, const float* k, const int B,
                      const int M, const int C, const int H, const int W,
                      const int K) {
  const int rows = H - FILTER + 1;
  const int columns = W - FILTER + 1;
#pragma omp parallel for
  for (int b = 0; b < B; ++b)
    for (int m = 0; m < M; ++m)
      for (int h = 0; h < rows; ++h) {
        float* const out = y + ((b * M + m) * rows + h) * columns;
        for (int w = 0; w < columns; ++w) out[w] = 0;
        for (int c = 0; c < C; ++c)
          for (int p = 0; p < FILTER; ++p)
            for (int q = 0; q < FILTER; ++q)
              for (int w = 0; w < columns; ++w)
                out[w] += x[((b * C + c) * H + h + p) * W + w + q] *
                          k[((m * C + c) * FILTER + p) * FILTER + q];
      }
}
