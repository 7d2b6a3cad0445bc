// Sums that people compute instead of the convolution; a part of mismatch.h.
#ifndef KERNELS_CONVOLUTION_CHECKING_MISMATCH_SUMS_H_
#define KERNELS_CONVOLUTION_CHECKING_MISMATCH_SUMS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/convolution/checking/mismatch_places.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// One product of the sum of an output: the input's channel, its row and column
// from the output's position, and the element of the filters.
struct Product {
  int64_t c, p, q;
  int64_t weight;  // index in k
  int64_t input;   // index in x
};

// A sum with an error: `alter` changes a product that is right otherwise, or
// returns false if the sum leaves it out.
struct WrongSum {
  std::string text;
  std::function<bool(Product& product)> alter;
};

// The errors that are possible in the problem.
std::vector<WrongSum> WrongSums(const Problem& problem);

// The sum in float64 for the output at `place`.
double SumOf(const WrongSum& sum, const Problem& problem, const float* x,
             const float* k, const OutputPlace& place);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_MISMATCH_SUMS_H_
