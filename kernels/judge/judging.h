// The judge without a compiler and without a machine: what Judge (verdict.h)
// does once it knows how to start the kernel's process.
#ifndef KERNELS_JUDGE_JUDGING_H_
#define KERNELS_JUDGE_JUDGING_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/judge/runner.h"
#include "kernels/judge/verdict.h"
#include "kernels/measure/hard_limits.h"

namespace convlab {

struct JudgedKernel {
  StartProcess start;
  bool has_prolog = false;  // its work may be done outside the op
  HardLimits limits;        // none on a CPU
};

absl::StatusOr<Verdict> JudgeKernel(const JudgedKernel& kernel,
                                    const JudgeOptions& options,
                                    Workers& workers);

}  // namespace convlab

#endif  // KERNELS_JUDGE_JUDGING_H_
