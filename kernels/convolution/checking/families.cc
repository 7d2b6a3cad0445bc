#include "kernels/convolution/checking/families.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace convlab {
namespace {

constexpr DataFamily kFamilies[] = {
    {"uniform", "random values of both signs, the ordinary data", ""},
    {"activations", "a network's activations: half zeros, most small", "relu"},
    {"bytes", "raw pixels, 0 to 255", "bytes"},
    {"one-signed", "all products are positive", "positive positive-filters"},
    {"dominant", "in each sum one product dominates, and all have its sign",
     "same-sign dominant(12,15)"},
    {"filter-scales", "each filter has its own scale, 2^-20 to 2^20",
     "filter-scales(-20,20)"},
    {"channel-scales",
     "each channel has its own scale, 2^-12 to 2^12, its weights the inverse",
     "channel-scales(-12,12)"},
    {"image-scales", "each image has its own scale, 2^-60 to 2^60",
     "image-scales(-60,60)"},
    {"half-dim", "half of each image is 2^-12 as bright", "half(-12)"},
    {"bright-pixel", "one pixel of each image is 2^20", "pixels(1,20)"},
    {"dazzling-pixel", "one pixel of each image is 2^40", "pixels(1,40)"},
    {"sparse", "90 % of the inputs are zero", "zeros(90)"},
    {"faint", "90 % of the inputs are below 2^-30", "faint(90,-30)"},
    {"faint-weights", "90 % of the weights are below 2^-30",
     "faint-taps(90,-30)"},
    {"cancelling", "sums far smaller than their products", "cancel(-10)"},
    {"checkerboard", "the inputs' signs alternate", "checkerboard"},
    {"constant", "each plane of the inputs has one value", "constant"},
    {"low-bits", "mantissas whose last twelve bits are ones", "low-bits(12)"},
    {"tiny-inputs", "inputs of 2^-66, outputs as small", "scale-x(-66)"},
    {"huge-weights", "weights of 2^66, outputs as large", "scale-k(66)"},
    {"opposite", "inputs of 2^120 and weights of 2^-120",
     "scale-x(120) scale-k(-120)"},
    {"denormal", "denormal inputs, and outputs of ordinary size",
     "scale-x(-135) scale-k(120)"},
    {"underflow", "products around the smallest denormal",
     "scale-x(-70) scale-k(-70)"},
    {"near-overflow", "the largest sums that cannot overflow", "near-overflow"},
    {"mixed", "a random mixture, another for each seed", nullptr},
};

}  // namespace

absl::Span<const DataFamily> DataFamilies() { return kFamilies; }

absl::StatusOr<const DataFamily*> FindDataFamily(absl::string_view name) {
  for (const DataFamily& family : kFamilies) {
    if (family.name == name) return &family;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no family of data '", name, "': expected one of ",
      absl::StrJoin(kFamilies, ", ",
                    [](std::string* out, const DataFamily& family) {
                      absl::StrAppend(out, family.name);
                    })));
}

Recipe RecipeOf(const DataFamily& family, uint64_t seed) {
  if (family.recipe == nullptr) return RandomRecipe(seed);
  // The table's recipes are right, as families_test says.
  Recipe recipe = *ParseRecipe(family.recipe);
  recipe.seed = seed;
  return recipe;
}

std::vector<Recipe> RecipesToCompare(const DataFamily& family) {
  const uint64_t seeds = family.recipe == nullptr ? 8 : 1;
  std::vector<Recipe> recipes;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    recipes.push_back(RecipeOf(family, seed));
  }
  return recipes;
}

std::string DescribeDataFamilies() {
  std::string text;
  for (const DataFamily& family : kFamilies) {
    absl::StrAppend(
        &text, absl::StrFormat("  %-15s %s\n", family.name, family.summary));
  }
  return text;
}

}  // namespace convlab
