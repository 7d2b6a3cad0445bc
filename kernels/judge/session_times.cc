// The times of the network's layers, and whether they can be believed.
#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "kernels/judge/session.h"

namespace convlab {
namespace {

// With more than 2^31 outputs.
constexpr Problem kHuge = {65000, 1, 44, 44, 21, 5};

int64_t MedianNs(const std::vector<int64_t>& samples) {
  return static_cast<int64_t>(Median(samples));
}

}  // namespace

void Judging::ClearTimes() {
  verdict_.layers.clear();
  for (const Problem& layer : layers_) {
    verdict_.layers.emplace_back();
    verdict_.layers.back().problem = layer;
  }
}

absl::Status Judging::TimeRound(const std::vector<size_t>& order, bool first) {
  if (first) first_round_.assign(layers_.size(), Attempt());
  for (const size_t i : order) {
    const JudgeTrial trial = {layers_[i], Family::kSigned, /*own=*/true};
    ASSIGN_OR_RETURN(const Attempt attempt, Try(trial));
    if (first) first_round_[i] = attempt;
    if (attempt.result == AttemptResult::kSkipped) {
      return absl::ResourceExhaustedError(attempt.reason[0]);
    }
    if (!attempt.right()) {
      if (!asked_failure_) {
        asked_failure_ = attempt;
        asked_failed_ = layers_[i];
      }
      if (!own_failure_) own_failed_ = trial;
      // A first round shows all layers, unless that would take long; later ones
      // are right or intermittent.
      if (!first || attempt.result == AttemptResult::kDied) {
        return absl::OkStatus();
      }
      continue;
    }
    LayerTimes& times = verdict_.layers[i];
    const CallResult& call = attempt.call;
    times.device_bytes = std::max(times.device_bytes, call.device_bytes);
    if (call.leaked_bytes > 0) {
      Note("device memory is not freed after each call");
    }
    // The first round warms up, and looks like what is timed. The trials before
    // have warmed up enough for a quick answer.
    if ((first && !options_.quick) || call.op_ns.empty()) continue;
    times.op_ns.push_back(call.op_ns[0]);
    if (!call.event_ns.empty()) times.kernel_ns.push_back(call.event_ns[0]);
    times.whole_ns.push_back(call.whole_ns);
  }
  return absl::OkStatus();
}

absl::Status Judging::TimeLayers(bool in_order) {
  std::vector<size_t> order(layers_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (!in_order) std::reverse(order.begin(), order.end());
  asked_failure_.reset();
  ClearTimes();
  RETURN_IF_ERROR(TimeRound(order, /*first=*/true));
  std::mt19937_64 generator(Mix(seed_, 0x71bed));
  const double begun = SteadySeconds();
  for (int i = options_.quick ? 1 : 0; i < options_.samples && !asked_failure_;
       ++i) {
    const double seconds = SteadySeconds() - begun;
    if (i >= (options_.quick ? 2 : 3) && seconds > options_.timed_seconds)
      break;
    if (i >= 1 && seconds > 6 * options_.timed_seconds) break;
    if (!in_order) std::shuffle(order.begin(), order.end(), generator);
    RETURN_IF_ERROR(TimeRound(order, /*first=*/false));
    if (asked_failure_ && asked_failure_->result == AttemptResult::kWrong) {
      asked_failure_->reason.push_back(
          absl::StrCat("runs before were right (", i + 1,
                       "): a race, or state that is kept between calls"));
    }
    Progress(0.5 + 0.4 * (i + 1.0) / options_.samples);
  }
  if (const int64_t growth = runner_.GrowthPerCall(); growth > 0) {
    Note(DescribeGrowth(growth));
  }
  return absl::OkStatus();
}

void Judging::Apply(const OpTimeWorth& time, size_t layer) {
  if (time.worth == OpTimeWorth::kIncredible) {
    SetReason(VerdictOutcome::kRefused,
              {absl::StrCat("layer ", layer + 1, ": ", time.note)});
  } else if (time.worth == OpTimeWorth::kNoResult && verdict_.op_time_counts) {
    verdict_.op_time_counts = false;
    verdict_.op_time_note = time.note;
  } else if (verdict_.op_time_note.empty()) {
    verdict_.op_time_note = time.note;
  }
}

absl::Status Judging::Trace() {
  ProcessOptions traced = options_.process;
  traced.trace = true;
  // The device memory that its process holds is the next one's.
  runner_.Restart();
  Runner runner(kernel_.start, traced, Mix(seed_, 0x77ace), workers_);
  for (size_t i = 0; i < layers_.size(); ++i) {
    ASSIGN_OR_RETURN(const Attempt attempt,
                     runner.Try(layers_[i], Family::kSigned));
    if (attempt.result == AttemptResult::kSkipped) continue;
    if (!attempt.right()) {
      std::vector<std::string> reason = attempt.reason;
      reason.emplace_back("it was right as long as nobody observed the GPU");
      SetReason(attempt.result == AttemptResult::kDied
                    ? VerdictOutcome::kCrashed
                    : VerdictOutcome::kWrong,
                std::move(reason));
      return absl::OkStatus();
    }
    if (attempt.call.work.empty()) {
      Note("the GPU's work outside the op was not observed: no trace");
    }
    Apply(CheckWork(attempt.call), i);
    LayerTimes& times = verdict_.layers[i];
    if (times.op_ns.empty()) continue;
    OpTimeWorth unobserved =
        CheckUnobserved(attempt.call, MedianNs(times.op_ns));
    // The first run of a process may be slow, and others may use the GPU.
    for (int more = 0; more < 3 && unobserved.worth == OpTimeWorth::kIncredible;
         ++more) {
      ASSIGN_OR_RETURN(const Attempt again,
                       runner.Try(layers_[i], Family::kSigned));
      unobserved = CheckUnobserved(again.call, MedianNs(times.op_ns));
    }
    Apply(unobserved, i);
    if (!times.kernel_ns.empty() &&
        MissedByEvents(attempt.call, MedianNs(times.kernel_ns))) {
      times.kernel_ns.clear();
      Note("device events do not see the kernels: no kernel time");
    }
  }
  return absl::OkStatus();
}

absl::Status Judging::CheckTimes() {
  if (options_.process.gpu) RETURN_IF_ERROR(Trace());
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerTimes& times = verdict_.layers[i];
    if (times.op_ns.empty()) continue;
    Apply(CheckFloor(layers_[i], verdict_.accuracy, kernel_.limits,
                     MedianNs(times.op_ns), MedianNs(times.whole_ns),
                     kernel_.has_prolog),
          i);
  }
  return absl::OkStatus();
}

// Whether the op can be called again without a new prolog.
absl::Status Judging::Repeat() {
  Manner manner;
  manner.warm_ops = 1;
  manner.timed_ops = 2;
  Problem problem = layers_[0];
  if (!own_failure_) problem.batch = std::min<int64_t>(problem.batch, 3);
  ASSIGN_OR_RETURN(const Attempt attempt,
                   runner_.Try(problem, Family::kSigned, manner));
  if (attempt.right() || attempt.result == AttemptResult::kSkipped) {
    return absl::OkStatus();
  }
  const std::string what = attempt.result != AttemptResult::kWrong
                               ? attempt.reason[0]
                           : attempt.check.cause.empty() ? "the output is wrong"
                                                         : attempt.check.cause;
  Note(
      absl::StrCat("the op cannot be repeated without a new prolog, as "
                   "SP26's competition does: after three calls ",
                   what));
  return absl::OkStatus();
}

absl::Status Judging::TryHuge() {
  if (options_.quick || !options_.huge || !options_.process.gpu) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Attempt attempt, Try({kHuge, Family::kSigned}));
  if (attempt.result == AttemptResult::kSkipped) Note(attempt.reason[0]);
  if (!attempt.right() && attempt.result != AttemptResult::kSkipped &&
      !other_failure_) {
    other_failure_ = attempt;
  }
  return absl::OkStatus();
}

}  // namespace convlab
