// Says where a wrong output is wrong, for people.
#ifndef KERNELS_CONVOLUTION_CHECKING_MISMATCH_H_
#define KERNELS_CONVOLUTION_CHECKING_MISMATCH_H_

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

// Compares y with the float64 reference of the problem and describes what is
// wrong in at most eight lines: the problem; the first wrong element as
// (b, m, h, w), got and expected; how many are wrong; and where they lie, as
// far as there is a pattern ("all in the last column of every row", "all images
// from 65,535 on", "never written", "every element: shifted by one column",
// "filters used in transposed order"). Empty if nothing is wrong. `poison` is
// the bit pattern with which y was filled before the run.
std::vector<std::string> DescribeMismatch(const Problem& problem,
                                          absl::Span<const float> y,
                                          absl::Span<const double> reference,
                                          const Tolerance& tolerance,
                                          uint32_t poison);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_MISMATCH_H_
