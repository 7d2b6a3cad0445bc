// Data that a search for the worst has found (tools/adversary): one find a
// line, the problem's sizes and the recipe of its data,
//
//   5,2,22,22,16,5 seed=7 pixels(1,40)#3 half(-12)
//
// Blank lines, and what follows two slashes, are left out.
#ifndef KERNELS_CONVOLUTION_CHECKING_FINDS_H_
#define KERNELS_CONVOLUTION_CHECKING_FINDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/convolution/checking/recipe.h"
#include "kernels/convolution/problem.h"

namespace convlab {

struct Find {
  Problem problem;
  Recipe recipe;
};

// One line without its end; and a text of them. InvalidArgument names the line.
std::string ToString(const Find& find);
absl::StatusOr<std::vector<Find>> ParseFinds(absl::string_view text);

// The finds in finds.txt.
absl::StatusOr<std::vector<Find>> CommittedFinds();

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_FINDS_H_
