// Starts a process that would use the GPU unseen.
// Caught: it is refused.
#include <unistd.h>

#include "convolve.cuh"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  if (fork() == 0) _exit(0);
  Convolve(x, k, y, B, C, H, W, M, K, stream);
}
