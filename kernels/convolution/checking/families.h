// The families of data on which class fp32 is tested, timed and compared: what
// networks see, and what breaks kernels that scale or split their operands.
//
//   ASSIGN_OR_RETURN(const DataFamily* family,
//   FindDataFamily("filter-scales")); const ConvolutionData data =
//   MakeData(problem, RecipeOf(*family, /*seed=*/7));
#ifndef KERNELS_CONVOLUTION_CHECKING_FAMILIES_H_
#define KERNELS_CONVOLUTION_CHECKING_FAMILIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/convolution/checking/recipe.h"

namespace convlab {

struct DataFamily {
  const char* name;
  const char* summary;
  const char* recipe;  // without a seed; null: another for each seed
};

// All families, "uniform" first.
absl::Span<const DataFamily> DataFamilies();

// InvalidArgument, with all names, if there is none of that name.
absl::StatusOr<const DataFamily*> FindDataFamily(absl::string_view name);

// The family's data, drawn by the seed.
Recipe RecipeOf(const DataFamily& family, uint64_t seed);

// What implementations are compared on: the family's data of one seed, or eight
// mixtures, of which some are zero or underflow altogether.
std::vector<Recipe> RecipesToCompare(const DataFamily& family);

// A line for each family, for --help.
std::string DescribeDataFamilies();

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_FAMILIES_H_
