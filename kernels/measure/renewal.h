// New inputs for each sample, so that no output of an earlier one is right:
// each image takes the place of another and, of ordinary data (random values of
// both signs and one scale), one image and all weights are new. Other data
// would lose what they are made for: their filters take each other's places,
// and all weights change their signs, or do not.
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
