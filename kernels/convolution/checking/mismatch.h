// Says where a wrong output is wrong, for people.
#ifndef KERNELS_CONVOLUTION_CHECKING_MISMATCH_H_
#define KERNELS_CONVOLUTION_CHECKING_MISMATCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// How far a right element may lie from the reference.
struct Tolerance {
  // |y - reference| <= relative * scale of the element, where the scale is the
  // root mean square of the reference; 0: exactly equal. NaN and infinity are
  // right only where the reference has the same.
  double relative = 0;
};

// What is known besides the output. Each part may be left out.
struct MismatchContext {
  // The problem's inputs and filters. With them, errors in the sums are
  // recognized: flipped or transposed filters, channels that are left out.
  absl::Span<const float> x, k;
  // If the problem is an excerpt of a larger batch: the number that each of its
  // images has in that batch, and which of all images there are wrong.
  std::vector<int64_t> images;
  std::vector<bool> wrong_images;
};

struct Mismatch {
  std::vector<std::string> lines;  // empty if nothing is wrong
  // The line of them that says what the wrong values look like, or how large
  // the errors are; empty if there is none.
  std::string cause;
  bool unwritten = false;  // nobody wrote any of the wrong elements
};

// Compares y with the float64 reference of the problem and describes what is
// wrong in at most eight lines: the problem and how many outputs are wrong; the
// first wrong element as (b, m, h, w), got and expected; where they lie, as far
// as there is a pattern ("in the last column", "in images from 65535 on"); and
// what their values look like ("never written", "each is the value of the
// element to its right", "the filters are transposed"). `poison` is the bit
// pattern with which y was filled before the run.
//
// A place is named only where all wrong elements lie in it, and either nearly
// all elements there are wrong or chance would not have put them there. A cause
// is named only if it explains 95 % of a sample of the wrong elements.
Mismatch DescribeMismatch(const Problem& problem, absl::Span<const float> y,
                          absl::Span<const double> reference,
                          const Tolerance& tolerance, uint32_t poison,
                          const MismatchContext& context = {});

// The same as one text with a line break before each line, for tests:
// EXPECT_EQ(MismatchText(...), "").
std::string MismatchText(const Problem& problem, absl::Span<const float> y,
                         absl::Span<const double> reference,
                         const Tolerance& tolerance, uint32_t poison,
                         const MismatchContext& context = {});

// Whether y may stand where `expected` is the reference: NaN for NaN, an
// infinity for the same, and numbers that differ by `allowed` at most.
bool IsRight(float y, double expected, double allowed);

// The root mean square of the finite elements; 0 if there is none.
double RootMeanSquare(absl::Span<const double> reference);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_MISMATCH_H_
