// New inputs for each sample, so that no output of an earlier one is right:
// each image and each filter takes the place of another, each filter changes
// its sign or does not, and of ordinary data (random values of both signs and
// one scale) one image is new. All this leaves the work as it is for kernels
// whose work depends on their data, and other data what they were made for.
#ifndef KERNELS_MEASURE_RENEWAL_H_
#define KERNELS_MEASURE_RENEWAL_H_

#include <cstdint>
#include <vector>

#include "kernels/convolution/checking/recipe.h"
#include "kernels/convolution/problem.h"

namespace convlab {

struct Renewal {
  int64_t shift = 0;  // image b becomes image b + shift of the first inputs
  int64_t new_place = -1;        // but for this image; -1: none is new
  std::vector<float> new_image;  // CHW
  std::vector<float> k;          // MCKK
};

// What the seed makes of inputs that `recipe` made, with weights `first_k`.
Renewal DrawRenewal(const Problem& problem, const Recipe& recipe, bool ordinary,
                    const std::vector<float>& first_k, uint64_t seed);

}  // namespace convlab

#endif  // KERNELS_MEASURE_RENEWAL_H_
