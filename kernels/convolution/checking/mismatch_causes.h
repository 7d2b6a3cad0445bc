// What the values of wrong elements look like; a part of mismatch.h.
#ifndef KERNELS_CONVOLUTION_CHECKING_MISMATCH_CAUSES_H_
#define KERNELS_CONVOLUTION_CHECKING_MISMATCH_CAUSES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// An output with errors.
struct WrongOutput {
  const Problem& problem;
  absl::Span<const float> y;
  absl::Span<const double> reference;
  absl::Span<const float> x, k;  // empty if not known
  double scale;                  // root mean square of the reference
  uint32_t poison;               // what y held before
};

struct Causes {
  std::vector<std::string> lines;  // one or two, or none; without ends
  bool unwritten = false;          // nobody wrote any of the elements
};

// What explains 95 % of the elements `wrong` (in ascending order), or of a
// sample of them.
Causes FindCauses(const WrongOutput& output, const std::vector<int64_t>& wrong);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_MISMATCH_CAUSES_H_
