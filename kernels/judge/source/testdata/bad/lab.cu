#include <wb.h>

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  wbLog(TRACE, "running");
}
