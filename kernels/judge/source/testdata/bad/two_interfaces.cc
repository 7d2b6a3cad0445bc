void conv_forward_cpu(float* y, const float* x, const float* k, const int B,
                      const int M, const int C, const int H, const int W,
                      const int K) {}

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {}
