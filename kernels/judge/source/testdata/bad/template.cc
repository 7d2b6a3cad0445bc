#include <algorithm>
#include <list>

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  std::list<float> sums(B);
  std::sort(sums.begin(), sums.end());
}
