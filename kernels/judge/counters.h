// What bounds a contributed kernel, by the GPU's hardware counters (ncu).
#ifndef KERNELS_JUDGE_COUNTERS_H_
#define KERNELS_JUDGE_COUNTERS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/convolution/problem.h"
#include "kernels/judge/process/process.h"

namespace convlab {

// The counters of the kernel that took most of the time.
struct KernelCounters {
  std::string kernel;                    // without parameters
  std::map<std::string, double> values;  // by ncu's names, in base units
};

// Runs the library once on random tensors of the problem under ncu. Unavailable
// if there is no ncu or the machine's administrator does not permit counters;
// DataLoss if its output cannot be read. `folder` is for ncu's output.
absl::StatusOr<KernelCounters> ReadCounters(const std::string& library,
                                            const Problem& problem,
                                            const ProcessOptions& options,
                                            const std::string& folder);

// Reads ncu's output (--csv --page raw): the row with the longest time.
absl::StatusOr<KernelCounters> ParseCounters(absl::string_view csv);

// Two lines: the counters that matter, and what they suggest.
std::vector<std::string> DescribeCounters(const KernelCounters& counters);

}  // namespace convlab

#endif  // KERNELS_JUDGE_COUNTERS_H_
