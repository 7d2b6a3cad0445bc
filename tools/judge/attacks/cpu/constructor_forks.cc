// Starts a process when it is loaded, which could do what the op may not.
// Caught: the rules hold before the library is loaded.
#include <unistd.h>

#include "convolve.h"

__attribute__((constructor)) static void Start() {
  if (fork() == 0) pause();
}

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  Convolve(x, k, y, B, C, H, W, M, K);
}
