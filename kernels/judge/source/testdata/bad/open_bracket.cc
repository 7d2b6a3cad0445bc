extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  for (int b = 0; b < B; ++b) {
    y[b] = x[b] * k[0];
  }
