// The operations of recipes (recipe.h): what each does to the data.
#ifndef KERNELS_CONVOLUTION_CHECKING_OPERATIONS_H_
#define KERNELS_CONVOLUTION_CHECKING_OPERATIONS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/hash/mix.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// What an operation changes, and its parameters.
struct OperationTarget {
  const Problem& problem;
  uint64_t seed;
  int a, b;  // the parameters
  std::vector<float>& x;
  std::vector<float>& k;

  int64_t area() const { return problem.height * problem.width; }
  int64_t plane_count() const { return problem.batch * problem.channels; }
  int64_t taps() const { return problem.kernel_size * problem.kernel_size; }

  uint64_t Draw(uint64_t i) const { return Mix(seed, i); }
  int64_t Below(uint64_t i, int64_t end) const {
    return static_cast<int64_t>(Draw(i) % static_cast<uint64_t>(end));
  }
  int Between(uint64_t i, int low, int high) const {
    return low + static_cast<int>(Below(i, std::max(0, high - low) + 1));
  }
  bool Percent(uint64_t i, int percent) const {
    return Below(i, 100) < percent;
  }
};

struct OperationKind {
  const char* name;
  const char* summary;
  void (*apply)(OperationTarget& target);
  int parameters;  // 0 to 2, in these ranges
  int least[2] = {0, 0}, most[2] = {0, 0};
  bool finite = true;  // finite data stay finite
};

// All of them, each name once.
absl::Span<const OperationKind> OperationKinds();

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_OPERATIONS_H_
