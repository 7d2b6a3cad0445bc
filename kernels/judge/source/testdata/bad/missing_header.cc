#include <vector>

#include "not_there.h"

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {}
