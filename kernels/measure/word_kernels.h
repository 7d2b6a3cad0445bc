// The launchers of sums over the words of device memory, behind gpu_loads.h,
// for nvcc. They run on all GPUs.
#ifndef KERNELS_MEASURE_WORD_KERNELS_H_
#define KERNELS_MEASURE_WORD_KERNELS_H_

#include <cstdint>

#include "kernels/cuda/error.h"

namespace convlab::cuda {

// Both add to *result, on the device: the number of words that equal `value`,
// or a number that depends on each word and its position.
Error LaunchCount(const uint32_t* words, int64_t count, uint32_t value,
                  unsigned long long* result);
Error LaunchFingerprint(const uint32_t* words, int64_t count,
                        unsigned long long* result);

}  // namespace convlab::cuda

#endif  // KERNELS_MEASURE_WORD_KERNELS_H_
