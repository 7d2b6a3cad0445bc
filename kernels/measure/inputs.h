// The inputs that a convolution is measured with, and the images that are
// checked, for every device.
#ifndef KERNELS_MEASURE_INPUTS_H_
#define KERNELS_MEASURE_INPUTS_H_

#include <cstdint>
#include <vector>

namespace convlab {

// Returns `count` values in [-1, 1), the same for the same seed.
std::vector<float> RandomFloats(int64_t count, int seed);

// The images of a batch that are compared with the reference, in ascending
// order: all of a small batch, otherwise some at equal distances, including the
// first and the last.
std::vector<int64_t> CheckedImages(int64_t batch);

}  // namespace convlab

#endif  // KERNELS_MEASURE_INPUTS_H_
