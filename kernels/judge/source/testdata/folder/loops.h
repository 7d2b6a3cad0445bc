inline void OneImage(const float* x, const float* k, float* y, int C, int H,
                     int W, int K) {
  for (int h = 0; h <= H - K; ++h) {
    for (int w = 0; w <= W - K; ++w) {
      float sum = 0;
      for (int c = 0; c < C; ++c) {
        for (int p = 0; p < K; ++p) {
          for (int q = 0; q < K; ++q) {
            sum += x[(c * H + h + p) * W + w + q] * k[(c * K + p) * K + q];
          }
        }
      }
      *y++ = sum;
    }
  }
}
