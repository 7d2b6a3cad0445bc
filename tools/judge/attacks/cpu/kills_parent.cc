// Kills its parent, the judge.
// Caught: the system call is refused and ends the process.
#include <unistd.h>

#include <csignal>

#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  kill(getppid(), SIGKILL);
  Convolve(x, k, y, B, C, H, W, M, K);
}
