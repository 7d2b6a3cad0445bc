// The inputs of a kernel that is judged, functions of a secret seed.
#ifndef KERNELS_JUDGE_TENSORS_H_
#define KERNELS_JUDGE_TENSORS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/hash/mix.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/problem.h"

namespace convlab {

enum class Family {
  kIntegers,      // x up to 2, weights up to 1: sums that even halves hold
  kSigned,        // [-1, 1)
  kPositive,      // [0, 1): rounding errors of one sign do not cancel
  kFilterScales,  // [-1, 1), and each filter by another power of two
  kSmall,         // [-1, 1) / 1024
  kLarge,         // pixels up to 256, weights up to 64
  kNotFinite,     // kSigned with a few NaN and infinities
};
absl::string_view Name(Family family);  // "values in [-1, 1)"

// One set of tensors.
struct Inputs {
  Problem problem;
  Family family = Family::kSigned;
  uint64_t seed = 0;
  // Whether the first and the last element of x and k are zeros, unless they
  // have few elements. Of two such runs in a row a kernel that knows inputs
  // again by a corner takes the second for the first, as it would with images
  // that have a background.
  bool zero_corners = false;
};

// Fills x and k, whose sizes are the problem's.
void Fill(const Inputs& inputs, absl::Span<float> x, absl::Span<float> k,
          Workers& workers);

// A signaling NaN with a random payload. Arithmetic turns it into a quiet one,
// so that an output that was added to differs from one that was not written.
uint32_t RandomPoison(uint64_t seed);
void FillBits(uint32_t bits, absl::Span<float> y, Workers& workers);

}  // namespace convlab

#endif  // KERNELS_JUDGE_TENSORS_H_
