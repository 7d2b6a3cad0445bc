// Halves without a GPU.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_ROUND_TO_HALF_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_ROUND_TO_HALF_H_

#include <algorithm>
#include <cmath>

namespace convlab::cuda {

// A half as the kernels round to it: 11 bits, and no less than 2^-24.
inline double RoundToHalf(double v) {
  if (v == 0) return 0;
  const int exponent = std::max(std::ilogb(v), -14);
  return std::ldexp(std::nearbyint(std::ldexp(v, 10 - exponent)),
                    exponent - 10);
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_ROUND_TO_HALF_H_
