// Compares an output with the convolution in float64: completely where the
// problem is small; in a large one some images completely, and all others by a
// sum of the filters with random weights,
//
//   sum over m of u[m] * y[b,m,h,w] = x[b] convolved with (sum of u[m] * k[m]),
//
// which costs one filter's convolution and shows any error in any element, as
// Freivalds' algorithm does for products of matrices.
#ifndef KERNELS_JUDGE_CHECK_H_
#define KERNELS_JUDGE_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/accuracy/accuracy.h"
#include "common/parallel/parallel.h"
#include "kernels/judge/process/process.h"
#include "kernels/judge/tensors.h"

namespace convlab {

struct OutputCheck {
  // Relative L2 error, the largest of all filters' and of the sum's. A filter's
  // error is relative to its own outputs, so that none hides behind another.
  double error = 0;
  // The largest error of an element, relative to the same.
  double largest = 0;
  // The tightest class whose bound holds for `error`, and 16 times the bound
  // for `largest`; for fp32 the outputs of two images keep its contract too
  // (common/accuracy/contract.h). For integers: fp32 if rounding makes every
  // output exact. Absent if there is none: the output is wrong.
  std::optional<AccuracyClass> accuracy;
  bool exact = false;  // integers are, without rounding
  // If wrong: at most eight lines (kernels/convolution/checking/mismatch.h).
  std::vector<std::string> mismatch;
  std::string cause;       // the line of them that names it, or empty
  bool unwritten = false;  // nobody wrote any of the wrong elements
  bool has_nan = false;    // and should not
};

// Checks y, which held `poison` before the run. `seed` chooses images and
// weights, and must not be known to the kernel.
OutputCheck CheckOutput(const Inputs& inputs, const SharedTensors& tensors,
                        uint32_t poison, uint64_t seed, Workers& workers);

}  // namespace convlab

#endif  // KERNELS_JUDGE_CHECK_H_
