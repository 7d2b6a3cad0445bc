// Prints a megabyte of terminal codes that clear the screen and write a
// verdict. Nothing to catch: what a kernel prints is kept apart, and made
// harmless.
#include <cstdio>

#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  for (int i = 0; i < 40000; ++i)
    std::fputs("\033[2J\033[H\033]0;right\007right", stdout);
  Convolve(x, k, y, B, C, H, W, M, K);
}
