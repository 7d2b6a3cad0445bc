// What a run record holds of contributed kernels.
#ifndef MILESTONES_KERNEL_RECORD_H_
#define MILESTONES_KERNEL_RECORD_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "kernels/inference/inference.h"
#include "kernels/judge/source/compile.h"
#include "kernels/judge/verdict.h"
#include "milestones/session.h"

namespace convlab {

// What is known of one kernel after its run.
struct KernelRun {
  CompiledKernel compiled;
  Verdict verdict;
  // Of the network; absent if the kernel failed there.
  std::optional<InferenceResult> result;
  std::vector<std::vector<int64_t>> whole_ns;  // for each convolution
  int64_t device_bytes = 0;
  std::vector<int64_t> correct;    // of each repetition
  std::vector<std::string> bound;  // by hardware counters; empty: not read
};

// Adds the kernel and its times to the session's record: as the run's
// convolutions, or to the ladder of a session that has one.
void AddToRecord(Session& session, const KernelRun& run);

// Verdicts and rankings ask how many answers a right convolution gives. The
// weights' file says it for some numbers of images; for others, ours is asked.
absl::Status RecordExpected(Session& session);

// Judges the numbers of correct answers of all kernels in the record
// (counts.h).
void JudgeKernelCounts(Session& session);

}  // namespace convlab

#endif  // MILESTONES_KERNEL_RECORD_H_
