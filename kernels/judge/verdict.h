// The verdict about a contributed kernel.
#ifndef KERNELS_JUDGE_VERDICT_H_
#define KERNELS_JUDGE_VERDICT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/accuracy/accuracy.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/convolution.h"
#include "kernels/judge/process/process.h"
#include "kernels/judge/source/compile.h"

namespace convlab {

// Rises when the judge checks more, or otherwise than before.
constexpr int kJudgeVersion = 1;

enum class VerdictOutcome {
  kRight,       // on everything that was tried
  kRestricted,  // right on the network's own layers, wrong or refused on other
                // sizes: the file has them hard-wired
  kWrong,       // on a layer of the network
  kRefused,     // breaks a rule: `reason` names it
  kCrashed,     // crash, exit, illegal address, limit of time or memory
};
absl::string_view Name(VerdictOutcome outcome);  // "right", "restricted", ...

// The times of one layer of the network at the batch that was asked for. All
// samples are of runs with fresh inputs whose outputs were checked.
struct LayerTimes {
  Problem problem;
  std::vector<int64_t> op_ns, kernel_ns, whole_ns;
  int64_t device_bytes = 0;
};

struct Verdict {
  VerdictOutcome outcome = VerdictOutcome::kRight;
  // Which rule, what happened, or where it is wrong: at most eight lines.
  std::vector<std::string> reason;
  int problems_tried = 0;
  int problems_right = 0;
  double relative_error = 0;  // the largest, L2, against float64
  AccuracyClass accuracy = AccuracyClass::kFp32;  // the tightest that holds
  std::vector<LayerTimes> layers;
  // If the op's work is done elsewhere (in the prolog, say), its op time is no
  // result, and the whole operation counts.
  bool op_time_counts = true;
  std::string op_time_note;
  std::string protection;  // KernelProcess::Protection
  // What people should know, and what counts against nobody: integers that are
  // not exact, memory that leaks or grows, an op that cannot be repeated.
  std::vector<std::string> notes;
  uint64_t seed = 0;   // with which the same inputs come again
  bool quick = false;  // only the network's own layers were tried
};

// Whether the kernel is right on the network's own layers, so that its times
// count.
inline bool IsRight(const Verdict& verdict) {
  return verdict.outcome == VerdictOutcome::kRight ||
         verdict.outcome == VerdictOutcome::kRestricted;
}

struct JudgeOptions {
  const Network* network = nullptr;
  int64_t batch = 10000;  // images for the times
  bool quick = false;     // only the network's own layers
  int samples = 7;        // timed runs for each layer
  // After so long three timed runs are enough, and two if `quick`.
  double timed_seconds = 20;
  bool huge = true;  // one problem of more than 2^31 outputs, on a GPU that has
                     // the memory; not if `quick`
  uint64_t seed = 0;  // of inputs and order; 0: a random one
  ProcessOptions process;
  std::function<void(double)> progress;  // the share of the work done
};

// Judges a compiled kernel: starts its process, checks it on the network's
// layers, the course's nine layers, odd shapes and special values, times it
// with fresh inputs, and observes its work. Errors are failures of the judge
// itself; whatever the kernel does is in the verdict. `process`, if there is
// one, runs the kernel already, and saves the start of another.
absl::StatusOr<Verdict> Judge(const CompiledKernel& kernel,
                              const JudgeOptions& options, Workers& workers,
                              std::unique_ptr<KernelProcess> process = nullptr);

// The verdict as the lines of one screen, without times.
std::string ToString(const Verdict& verdict);

}  // namespace convlab

#endif  // KERNELS_JUDGE_VERDICT_H_
