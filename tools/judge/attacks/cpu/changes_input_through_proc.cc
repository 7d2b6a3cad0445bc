// The same through /proc/self/mem, which writes to read-only pages too.
// Caught: inputs are compared with what they were.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  const std::vector<float> zeros(size_t{1} * B * C * H * W);
  const int memory = open("/proc/self/mem", O_RDWR);
  if (memory < 0 ||
      pwrite(memory, zeros.data(), zeros.size() * sizeof(float),
             static_cast<off_t>(reinterpret_cast<uintptr_t>(x))) < 0) {
    return;
  }
  close(memory);
  Convolve(x, k, y, B, C, H, W, M, K);
}
