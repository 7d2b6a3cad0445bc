// Prints its sizes and its own time, as half of the course's files do.
// Nothing to catch.
#include <chrono>
#include <cstdio>
#include <iostream>

#include "convolve.h"

void conv_forward_cpu(float* y, const float* x, const float* k, const int B,
                      const int M, const int C, const int H, const int W,
                      const int K) {
  std::cout << "*** B = " << B << ", M = " << M << " ***" << std::endl;
  const auto start = std::chrono::steady_clock::now();
  Convolve(x, k, y, B, C, H, W, M, K);
  const std::chrono::duration<double> time =
      std::chrono::steady_clock::now() - start;
  std::fprintf(stderr, "Op Time: %f, Correctness: unknown\n", time.count());
}
