// The launcher of the comparison of outputs with the definition, behind
// output_errors.h, for nvcc. It runs on all GPUs.
#ifndef KERNELS_MEASURE_ERROR_KERNELS_H_
#define KERNELS_MEASURE_ERROR_KERNELS_H_

#include <cstdint>

#include "kernels/convolution/problem.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {

// ErrorSums (sampled_reference.h) in device memory. The factors are the bits of
// a double, whose order is that of the numbers, which are not negative.
struct ErrorSumsBits {
  double difference, norm;
  unsigned long long factor, plain;
};

// Adds the errors of `count` elements of y to *sums: of those that the seed
// draws, or of the first `count` if `drawn` is false. Tensors are in device
// memory.
Error LaunchErrors(const Problem& problem, const float* x, const float* k,
                   const float* y, int64_t count, bool drawn, uint64_t seed,
                   ErrorSumsBits* sums);

}  // namespace convlab::cuda

#endif  // KERNELS_MEASURE_ERROR_KERNELS_H_
