// The course of a judgement; a part of judging.h.
#ifndef KERNELS_JUDGE_SESSION_H_
#define KERNELS_JUDGE_SESSION_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/judge/credible.h"
#include "kernels/judge/judging.h"

namespace convlab {

// Seconds on a clock that only runs forward.
double SteadySeconds();

class Judging {
 public:
  // The seed of `options` is not 0.
  Judging(const JudgedKernel& kernel, const JudgeOptions& options,
          Workers& workers)
      : kernel_(kernel),
        options_(options),
        workers_(workers),
        seed_(options.seed),
        layers_(LayersOf(*options.network, options.batch)),
        runner_(kernel.start, options.process, seed_, workers) {
    verdict_.seed = seed_;
    verdict_.quick = options.quick;
    ClearTimes();
  }

  absl::StatusOr<Verdict> Run();

 private:
  absl::StatusOr<Attempt> Try(const JudgeTrial& trial);
  void NoteSpecial(const JudgeTrial& trial, const Attempt& attempt);
  absl::Status TryAll();
  // Whether more trials would only cost time.
  bool IsHopeless() const;
  // Runs all layers at the batch that was asked for: `in_order` as the network
  // does, otherwise in random order, and first in the reverse one.
  absl::Status TimeLayers(bool in_order);
  void ClearTimes();
  absl::Status TimeRound(const std::vector<size_t>& order, bool first);
  absl::Status TryOtherNetworks();
  // Whether the kernel has let the judge wait for so long that it is not tried
  // on more than is needed.
  bool HasLostEnough() const;
  absl::Status FindReason();
  // Whether the reason was found; sets it then.
  absl::StatusOr<bool> DependsOnMemory(const Attempt& failure);
  absl::StatusOr<bool> DependsOnTime(const Attempt& failure);
  absl::StatusOr<bool> DependsOnOrder(const Attempt& failure);
  absl::StatusOr<std::string> FindRightNetwork();
  absl::Status CheckTimes();
  absl::Status Trace();
  absl::Status Repeat();
  absl::Status TryHuge();
  void Apply(const OpTimeWorth& time, size_t layer);
  void Decide();
  void SetReason(VerdictOutcome outcome, std::vector<std::string> reason);
  std::vector<std::string> Hints() const;
  void Note(const std::string& text);
  void Progress(double share) const {
    if (options_.progress) options_.progress(share);
  }

  const JudgedKernel& kernel_;
  const JudgeOptions& options_;
  Workers& workers_;
  const uint64_t seed_;
  const std::vector<Problem> layers_;
  Runner runner_;
  Verdict verdict_;
  std::vector<Tried> tried_;
  std::set<std::string> special_notes_;  // of families that narrow types lack
  // The first failures: of the layers at the batch that was asked for, of the
  // layers at other batches, and of other sizes.
  std::optional<Attempt> asked_failure_, own_failure_, other_failure_;
  Problem asked_failed_;   // the problem of asked_failure_
  JudgeTrial own_failed_;  // the trial of own_failure_, or of asked_failure_
  std::vector<Attempt> first_round_;  // by layer
  // How often and for how long a process died of a trial.
  int deaths_ = 0;
  double lost_seconds_ = 0;
  bool ordered_ = false;  // right only in the network's order
  bool decided_ = false;
};

}  // namespace convlab

#endif  // KERNELS_JUDGE_SESSION_H_
