// Waits for the end of the process to crash it, in a destructor and by atexit.
// Nothing to catch: the process is killed, and its verdict is known before.
#include <cstdlib>

#include "convolve.h"

struct Last {
  ~Last() { std::abort(); }
};
static Last last;

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  static const int registered = std::atexit([] { std::abort(); });
  if (registered == 0) Convolve(x, k, y, B, C, H, W, M, K);
}
