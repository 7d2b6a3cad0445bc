// The inputs that a convolution is measured with, for every device.
#ifndef KERNELS_MEASURE_INPUTS_H_
#define KERNELS_MEASURE_INPUTS_H_

#include <cstdint>
#include <vector>

namespace convlab {

// Returns `count` values in [-1, 1), the same for the same seed.
std::vector<float> RandomFloats(int64_t count, int seed);

}  // namespace convlab

#endif  // KERNELS_MEASURE_INPUTS_H_
