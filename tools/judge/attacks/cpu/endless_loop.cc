// Never returns.
// Caught: calls have a limit of time.
extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  for (volatile int i = 0;; i = i + 1)
    y[0] = x[0] * k[0] * B * C * H * W * M * K;
}
