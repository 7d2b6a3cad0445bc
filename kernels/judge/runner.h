// Runs a contributed kernel on fresh inputs and checks the output.
#ifndef KERNELS_JUDGE_RUNNER_H_
#define KERNELS_JUDGE_RUNNER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/judge/check.h"
#include "kernels/judge/process/fault.h"
#include "kernels/judge/process/process.h"
#include "kernels/judge/trials.h"

namespace convlab {

// KernelProcess::Start for one library; tests have processes of their own.
using StartProcess =
    std::function<absl::StatusOr<std::unique_ptr<KernelProcess>>(
        const ProcessOptions& options)>;

enum class AttemptResult {
  kRight,
  kWrong,
  kBroke,    // a rule: wrote outside its tensors, returned an earlier result
  kDied,     // crash, exit, limit of time or memory
  kSkipped,  // the machine has not enough memory for the problem
};

struct Attempt {
  AttemptResult result = AttemptResult::kRight;
  // kBroke and kDied. A kernel that has other sizes hard-wired writes outside.
  Fault fault = Fault::kEnded;
  std::vector<std::string> reason;  // unless right
  OutputCheck check;
  CallResult call;

  bool right() const { return result == AttemptResult::kRight; }
};

// How the kernel is called.
struct Manner {
  int warm_ops = 0;
  int timed_ops = 1;
  bool zeroed = false;        // the output holds zeros before, not NaN
  double linger_seconds = 0;  // KernelCall::linger_seconds
};

// What Runner::GrowthPerCall means, for people.
std::string DescribeGrowth(int64_t bytes);

class Runner {
 public:
  Runner(StartProcess start, ProcessOptions options, uint64_t seed,
         Workers& workers)
      : start_(std::move(start)),
        options_(std::move(options)),
        seed_(seed),
        workers_(workers) {}

  // Runs and checks the kernel once, with inputs and poison that no run had
  // before, in a new process if the last one has died. Errors are failures of
  // the judge or the machine.
  absl::StatusOr<Attempt> Try(const Problem& problem, Family family,
                              const Manner& manner = {});

  // The next Try has a new process.
  void Restart() {
    process_.reset();
    memory_.clear();
  }

  // Whether a process has ever come so far that it could be called.
  bool has_started() const { return has_started_; }
  const std::string& protection() const { return protection_; }

  // By how much a kernel's memory on the host grows with each call, if it has
  // grown with each of the last ones by no little; otherwise 0.
  int64_t GrowthPerCall() const;

 private:
  absl::StatusOr<Attempt> TryInProcess(const Inputs& inputs,
                                       const Manner& manner);
  bool IsEarlierResult(const Problem& problem, absl::Span<const float> y);

  const StartProcess start_;
  const ProcessOptions options_;
  const uint64_t seed_;
  Workers& workers_;
  std::unique_ptr<KernelProcess> process_;
  bool has_started_ = false;
  std::string protection_;
  std::vector<int64_t> memory_;  // of process_, after each of its calls
  uint64_t runs_ = 0;
  // Some elements of the last right output of each problem.
  std::map<std::string, std::vector<float>> earlier_;
};

}  // namespace convlab

#endif  // KERNELS_JUDGE_RUNNER_H_
