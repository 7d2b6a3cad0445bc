// Keeps results by the first bytes of the inputs, and would be right with them;
// it ends the process at a hit, so that a hit shows.
// Nothing to catch as long as no input comes twice: an honest time.
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "convolve.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  static std::set<std::string> seen;
  std::string key = std::to_string(OutputSize(B, H, W, M, K));
  key.append(reinterpret_cast<const char*>(x), 64);
  key.append(reinterpret_cast<const char*>(k), 64);
  if (!seen.insert(key).second) std::abort();
  Convolve(x, k, y, B, C, H, W, M, K);
}
