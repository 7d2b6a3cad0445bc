#include "kernels/judge/judging.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"
#include "kernels/judge/session.h"

namespace convlab {
namespace {

// A kernel that dies on so many sizes that are not the network's, or lets the
// judge wait for so long until it dies, or for three calls that never end, is
// not tried on more. One such call is enough for a quick answer.
constexpr int kMostDeaths = 8;
constexpr double kMostLostSeconds = 30;
constexpr size_t kMostLines = 8;

// Whether values of this family tell the class; the others have a range that
// narrow types lack, or are no numbers.
bool TellsClass(Family family) {
  return family == Family::kSigned || family == Family::kPositive ||
         family == Family::kFilterScales;
}
bool IsSpecial(Family family) {
  return family == Family::kSmall || family == Family::kLarge ||
         family == Family::kNotFinite;
}

uint64_t RandomSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device() | 1;
}

}  // namespace

double SteadySeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Judging::Note(const std::string& text) {
  if (std::find(verdict_.notes.begin(), verdict_.notes.end(), text) ==
      verdict_.notes.end()) {
    verdict_.notes.push_back(text);
  }
}

// Families that right kernels may fail cost the class or a note.
void Judging::NoteSpecial(const JudgeTrial& trial, const Attempt& attempt) {
  if (attempt.right()) return;
  if (trial.family == Family::kNotFinite) {
    special_notes_.insert(
        "NaN and infinities of the inputs are not where they belong");
    return;
  }
  verdict_.accuracy = AccuracyClass::kBf16;
  special_notes_.insert(
      absl::StrFormat("wrong for %s (relative error %.1g), as with a type of "
                      "small range or small values added",
                      Name(trial.family), attempt.check.error));
}

bool Judging::HasLostEnough() const {
  const int calls = options_.quick ? 1 : 3;
  return lost_seconds_ >=
         std::min(kMostLostSeconds, calls * options_.process.seconds);
}

absl::StatusOr<Attempt> Judging::Try(const JudgeTrial& trial) {
  const double start = SteadySeconds();
  ASSIGN_OR_RETURN(Attempt attempt, runner_.Try(trial.problem, trial.family));
  if (attempt.result == AttemptResult::kDied) {
    ++deaths_;
    lost_seconds_ += SteadySeconds() - start;
  }
  if (attempt.result == AttemptResult::kSkipped) return attempt;
  // A special family says something of numbers only where they are wrong. That
  // becomes a note, and does not count.
  if (IsSpecial(trial.family) &&
      (attempt.right() || attempt.result == AttemptResult::kWrong)) {
    NoteSpecial(trial, attempt);
    return attempt;
  }
  ++verdict_.problems_tried;
  if (attempt.right()) ++verdict_.problems_right;
  tried_.push_back({trial.problem, attempt.right()});
  if (!attempt.right()) return attempt;
  if (trial.family == Family::kIntegers && !attempt.check.exact) {
    Note("integers are not exact: transforms, or sums in a narrow type");
  }
  if (TellsClass(trial.family)) {
    verdict_.accuracy = std::max(verdict_.accuracy, *attempt.check.accuracy);
    verdict_.relative_error =
        std::max(verdict_.relative_error, attempt.check.error);
  }
  return attempt;
}

bool Judging::IsHopeless() const {
  return deaths_ >= kMostDeaths || HasLostEnough();
}

absl::Status Judging::TryAll() {
  const std::vector<JudgeTrial> trials =
      MakeTrials(*options_.network, options_.quick, options_.process.gpu,
                 Mix(seed_, 0x7121a15));
  for (size_t i = 0; i < trials.size(); ++i) {
    const JudgeTrial& trial = trials[i];
    if (IsHopeless() && !(trial.own && !HasLostEnough())) {
      continue;
    }
    ASSIGN_OR_RETURN(const Attempt attempt, Try(trial));
    if (!runner_.has_started()) {
      SetReason(VerdictOutcome::kCrashed, attempt.reason);
      return absl::OkStatus();
    }
    Progress(0.5 * static_cast<double>(i) / static_cast<double>(trials.size()));
    if (attempt.right() || attempt.result == AttemptResult::kSkipped ||
        (attempt.result == AttemptResult::kWrong && IsSpecial(trial.family))) {
      continue;
    }
    std::optional<Attempt>& failure = trial.own ? own_failure_ : other_failure_;
    // The smallest problem shows best what is wrong.
    if (!failure ||
        (trial.own && trial.problem.flops() < own_failed_.problem.flops())) {
      failure = attempt;
      if (trial.own) own_failed_ = trial;
    }
  }
  // A kernel that only hangs is not asked for a large batch.
  if (HasLostEnough() && verdict_.problems_right == 0) {
    SetReason(VerdictOutcome::kCrashed,
              own_failure_ ? own_failure_->reason : other_failure_->reason);
  }
  return absl::OkStatus();
}

void Judging::SetReason(VerdictOutcome outcome,
                        std::vector<std::string> reason) {
  // A broken rule counts more than what it was right on.
  const bool worse = outcome == VerdictOutcome::kRefused &&
                     verdict_.outcome == VerdictOutcome::kRestricted;
  if (decided_ && !worse) return;
  decided_ = true;
  verdict_.outcome = outcome;
  if (reason.size() > kMostLines) reason.resize(kMostLines);
  verdict_.reason = std::move(reason);
}

// What the sizes on which the kernel is right have in common.
std::vector<std::string> Judging::Hints() const {
  std::vector<std::string> hints;
  const std::string hard_wired = FindHardWired(tried_);
  if (!hard_wired.empty()) {
    hints.push_back(hard_wired);
  } else {
    const auto rights =
        std::count_if(tried_.begin(), tried_.end(),
                      [](const Tried& tried) { return tried.right; });
    hints.push_back(absl::StrCat("right in ", rights, " of ", tried_.size(),
                                 " trials, whose sizes have nothing simple in "
                                 "common"));
  }
  return hints;
}

// The layers of other networks that were not tried: the file may be made for
// one of them.
absl::Status Judging::TryOtherNetworks() {
  if (!options_.quick) return absl::OkStatus();
  deaths_ = 0;
  for (const Network& network : Networks()) {
    if (network.name == options_.network->name) continue;
    for (const Problem& layer : LayersOf(network, 2)) {
      if (IsHopeless()) return absl::OkStatus();
      RETURN_IF_ERROR(Try({layer, Family::kIntegers}).status());
    }
  }
  return absl::OkStatus();
}

// Whether threads of the kernel still compute when its function has returned.
// What a GPU still does then belongs to the op.
absl::StatusOr<bool> Judging::DependsOnTime(const Attempt& failure) {
  // A thread may also meet the tensors of the call behind, and crash.
  if (options_.process.gpu || failure.fault == Fault::kTookTooLong ||
      failure.fault == Fault::kBrokeRule) {
    return false;
  }
  // So much work takes longer than it takes to stop the process, and plain
  // loops end it within the wait.
  constexpr int64_t kMostFlops = 500'000'000;
  constexpr double kSeconds = 1;
  Problem problem = asked_failed_;
  const int64_t images = kMostFlops / (problem.flops() / problem.batch) + 1;
  problem.batch = std::min(problem.batch, images);
  // One that is right now and then without the wait has a race.
  for (const bool waits : {true, false, true}) {
    // Threads of the calls before may still write to the output.
    runner_.Restart();
    Manner manner;
    if (waits) manner.linger_seconds = kSeconds;
    ASSIGN_OR_RETURN(const Attempt attempt,
                     runner_.Try(problem, Family::kSigned, manner));
    if (attempt.right() != waits) return false;
  }
  std::vector<std::string> reason = {
      absl::StrCat("right only if ", kSeconds,
                   " s passes after it has returned: "
                   "its threads still write the output then"),
      "wait for all threads that it starts (join them) before it returns"};
  reason.insert(reason.end(), failure.reason.begin(), failure.reason.end());
  SetReason(VerdictOutcome::kWrong, std::move(reason));
  return true;
}

absl::StatusOr<bool> Judging::DependsOnMemory(const Attempt& failure) {
  if (failure.result != AttemptResult::kWrong || !failure.check.has_nan) {
    return false;
  }
  // Without zeros it must be wrong before and after: one that keeps something
  // between calls may be right by turns.
  for (const bool zeroed : {false, true, false}) {
    Manner manner;
    manner.zeroed = zeroed;
    ASSIGN_OR_RETURN(const Attempt attempt,
                     runner_.Try(own_failed_.problem, Family::kSigned, manner));
    if (attempt.right() != zeroed) return false;
  }
  std::vector<std::string> reason = {
      "right only if the output's memory holds zeros before: it does not write "
      "all of it, or adds to it",
      "the course's program cleared it and called the op once; clear the "
      "output in the op"};
  reason.insert(reason.end(), failure.reason.begin(), failure.reason.end());
  SetReason(VerdictOutcome::kRefused, std::move(reason));
  return true;
}

absl::StatusOr<bool> Judging::DependsOnOrder(const Attempt& failure) {
  if (failure.result != AttemptResult::kWrong || layers_.size() < 2) {
    return false;
  }
  runner_.Restart();
  RETURN_IF_ERROR(TimeLayers(/*in_order=*/true));
  if (asked_failure_) return false;
  ordered_ = true;
  SetReason(VerdictOutcome::kRestricted,
            {"right only if the layers are called in the network's order, from "
             "the first one on: it keeps state between calls"});
  return true;
}

// A hint at another network, if the file is made for it, or empty.
absl::StatusOr<std::string> Judging::FindRightNetwork() {
  // A kernel for other sizes is never right on these.
  for (const Tried& tried : tried_) {
    Problem same = own_failed_.problem;
    same.batch = tried.problem.batch;
    if (tried.right && ToString(tried.problem) == ToString(same)) {
      return std::string();
    }
  }
  RETURN_IF_ERROR(TryOtherNetworks());
  // The network itself is not among them: one of its layers was never right.
  const std::vector<std::string> networks = RightNetworks(tried_);
  if (networks.empty()) return std::string();
  const std::string names = absl::StrJoin(networks, ", ");
  return absl::StrCat("right for the sizes of ", names, ", not for those of ",
                      options_.network->name, ": run it with ", names);
}

// Why a layer of the network is wrong.
absl::Status Judging::FindReason() {
  const Attempt failure = *asked_failure_;
  ASSIGN_OR_RETURN(const bool by_time, DependsOnTime(failure));
  if (by_time) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool by_memory, DependsOnMemory(failure));
  if (by_memory) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool by_order, DependsOnOrder(failure));
  if (by_order) return absl::OkStatus();
  std::vector<std::string> reason;
  if (first_round_.size() > 1 && first_round_[0].check.unwritten &&
      first_round_.back().right()) {
    reason.emplace_back(
        "the first layer's call writes nothing and the second's is right: a "
        "file that computes both in its second call cannot be judged here");
  }
  if (failure.fault == Fault::kTookTooLong && verdict_.problems_right > 0) {
    reason.emplace_back(
        "fewer images were right: ask for a smaller batch, or allow more time");
  }
  if (failure.check.has_nan && options_.process.gpu) {
    reason.emplace_back(
        "new device memory holds NaN here; on the course's machines it mostly "
        "held zeros");
  }
  ASSIGN_OR_RETURN(const std::string network, FindRightNetwork());
  if (!network.empty()) {
    reason.insert(reason.begin(), network);
    const std::string hard_wired = FindHardWired(tried_);
    if (!hard_wired.empty()) reason.insert(reason.begin() + 1, hard_wired);
  }
  // A small problem shows better what is wrong, if it is wrong as well.
  const bool at_once =
      std::any_of(first_round_.begin(), first_round_.end(),
                  [](const Attempt& attempt) { return !attempt.right(); });
  const bool show_small = at_once && network.empty() && own_failure_ &&
                          own_failure_->result == failure.result;
  const Attempt& shown = show_small ? *own_failure_ : failure;
  reason.insert(reason.end(), shown.reason.begin(), shown.reason.end());
  VerdictOutcome outcome = VerdictOutcome::kWrong;
  if (network.empty() && failure.result == AttemptResult::kBroke) {
    outcome = VerdictOutcome::kRefused;
  } else if (network.empty() && failure.result == AttemptResult::kDied) {
    outcome = VerdictOutcome::kCrashed;
  }
  SetReason(outcome, std::move(reason));
  return absl::OkStatus();
}

void Judging::Decide() {
  if (decided_) return;
  const Attempt* const failure = own_failure_     ? &*own_failure_
                                 : other_failure_ ? &*other_failure_
                                                  : nullptr;
  if (failure == nullptr) return;
  if (own_failure_ && own_failure_->result == AttemptResult::kBroke &&
      own_failure_->fault != Fault::kWroteOutside) {
    SetReason(VerdictOutcome::kRefused, own_failure_->reason);
    return;
  }
  std::vector<std::string> reason = Hints();
  reason.insert(reason.end(), failure->reason.begin(), failure->reason.end());
  SetReason(VerdictOutcome::kRestricted, std::move(reason));
}

absl::StatusOr<Verdict> Judging::Run() {
  RETURN_IF_ERROR(TryAll());
  // What is wrong with ordinary values loses nothing in particular.
  if (std::any_of(tried_.begin(), tried_.end(),
                  [](const auto& tried) { return tried.right; })) {
    for (const std::string& note : special_notes_) Note(note);
  }
  if (!decided_) RETURN_IF_ERROR(TimeLayers(/*in_order=*/false));
  if (!decided_ && asked_failure_) RETURN_IF_ERROR(FindReason());
  // Times of outputs that were wrong are none.
  if (asked_failure_) {
    ClearTimes();
  } else if (!decided_ || ordered_) {
    if (!ordered_) RETURN_IF_ERROR(Repeat());
    RETURN_IF_ERROR(CheckTimes());
    if (!ordered_) RETURN_IF_ERROR(TryHuge());
  }
  Decide();
  verdict_.protection = runner_.protection();
  Progress(1);
  return verdict_;
}

absl::StatusOr<Verdict> JudgeKernel(const JudgedKernel& kernel,
                                    const JudgeOptions& options,
                                    Workers& workers) {
  JudgeOptions seeded = options;
  if (seeded.seed == 0) seeded.seed = RandomSeed();
  return Judging(kernel, seeded, workers).Run();
}

}  // namespace convlab
