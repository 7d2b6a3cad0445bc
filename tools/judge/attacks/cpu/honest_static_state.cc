// Keeps a workspace and a count of its calls at file scope.
// Nothing to catch: the state is not the result.
#include <algorithm>
#include <vector>

#include "convolve.h"

static std::vector<float> workspace;
static int calls = 0;

void conv_forward_cpu(float* y, const float* x, const float* k, const int B,
                      const int M, const int C, const int H, const int W,
                      const int K) {
  ++calls;
  const size_t size = OutputSize(B, H, W, M, K);
  if (workspace.size() < size) workspace.resize(size);
  Convolve(x, k, workspace.data(), B, C, H, W, M, K);
  std::copy_n(workspace.begin(), size, y);
}
