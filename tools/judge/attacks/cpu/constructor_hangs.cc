// Sleeps when it is loaded.
// Caught: loading has a limit of time.
#include <unistd.h>

#include "convolve.h"

__attribute__((constructor)) static void Sleep() { sleep(100000); }

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  Convolve(x, k, y, B, C, H, W, M, K);
}
