// What a convolution is measured on and checked with, whatever the device.
#ifndef KERNELS_MEASURE_INPUTS_H_
#define KERNELS_MEASURE_INPUTS_H_

#include <cstdint>
#include <vector>

namespace convlab {

// `count` values in [-1, 1), the same for the same seed.
std::vector<float> RandomFloats(int64_t count, int seed);

// The images of a batch that are compared with the reference: all of a few, or
// else some at equal distances, the first and the last among them. Ascending.
std::vector<int64_t> CheckedImages(int64_t batch);

}  // namespace convlab

#endif  // KERNELS_MEASURE_INPUTS_H_
