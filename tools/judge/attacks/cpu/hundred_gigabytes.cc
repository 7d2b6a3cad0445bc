// Uses 100 GB of memory.
// Caught: memory has a limit.
#include <cstring>

#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  constexpr size_t kBytes = size_t{100} << 30;
  // Volatile, or the compiler would leave it out.
  char* volatile const memory = new char[kBytes];
  std::memset(memory, B, kBytes);
  Convolve(x, k, y, B, C, H, W, M, K);
  delete[] memory;
}
