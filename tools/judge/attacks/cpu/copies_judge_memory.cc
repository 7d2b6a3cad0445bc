// Copies memory out of its parent by process_vm_readv.
// Caught: the system call is refused and ends the process.
#include <sys/uio.h>
#include <unistd.h>

#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  float value = 0;
  iovec here = {&value, sizeof(value)};
  iovec there = {const_cast<float*>(x), sizeof(value)};
  process_vm_readv(getppid(), &here, 1, &there, 1, 0);
  Convolve(x, k, y, B, C, H, W, M, K);
}
