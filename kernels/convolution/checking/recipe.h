// The data of a convolution as a recipe: a seed, from which all values are
// drawn in [-1, 1], and operations that change them one after the other. A
// recipe is short text, so that data which a kernel computes wrongly can be
// written down:
//
//   seed=7 positive filter-scales(-20,20) pixels(1,40)#3
//
// The named families of data (families.h), the search for the worst data
// (tools/adversary) and what it found are recipes.
#ifndef KERNELS_CONVOLUTION_CHECKING_RECIPE_H_
#define KERNELS_CONVOLUTION_CHECKING_RECIPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/convolution/problem.h"

namespace convlab {

struct OperationKind;

// One operation. Its own seed chooses what is random in it, apart from the
// other operations, so that a recipe can be changed at one place.
struct DataOperation {
  const OperationKind* kind = nullptr;
  int parameters[2] = {0, 0};
  uint32_t seed = 0;
};

struct Recipe {
  uint64_t seed = 1;
  std::vector<DataOperation> operations;
};

// The text above. A recipe is InvalidArgument if it names an operation that
// does not exist, which lists those that do, or has wrong parameters.
std::string ToString(const Recipe& recipe);
absl::StatusOr<Recipe> ParseRecipe(absl::string_view text);

// What the operations do, a line for each.
std::string DescribeOperations();

// x and k, with the sizes of problem.h.
struct ConvolutionData {
  std::vector<float> x, k;
};

// Makes the data of the valid problem. The values are the same on every
// machine, and finite unless an operation makes them otherwise: what would
// overflow is float32's largest value.
ConvolutionData MakeData(const Problem& problem, const Recipe& recipe);

// A recipe of one to five operations drawn by the seed, none of which makes
// infinities or NaN.
Recipe RandomRecipe(uint64_t seed);

// The recipe with a random change: an operation more or less, another parameter
// or another seed. `random` chooses.
Recipe Mutate(const Recipe& recipe, uint64_t random);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_RECIPE_H_
