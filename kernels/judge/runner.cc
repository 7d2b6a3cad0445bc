#include "kernels/judge/runner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/status/status.h"
#include "kernels/convolution/convolution.h"

namespace convlab {
namespace {

// The last line that a process printed, short enough for a verdict.
std::string LastLine(absl::string_view printed) {
  constexpr size_t kMostBytes = 200;
  const std::vector<absl::string_view> lines =
      absl::StrSplit(printed, '\n', absl::SkipWhitespace());
  return lines.empty() ? "" : OneLine(lines.back().substr(0, kMostBytes));
}

// `printed` is all that the process printed.
Attempt Failed(const Problem& problem, const absl::Status& status,
               const ProcessOptions& options, absl::string_view printed) {
  Attempt attempt;
  attempt.fault = FaultOf(status);
  attempt.result = attempt.fault == Fault::kBrokeRule ||
                           attempt.fault == Fault::kWroteOutside
                       ? AttemptResult::kBroke
                       : AttemptResult::kDied;
  attempt.reason = {
      absl::StrCat(ToString(problem), ": ", OneLine(status.message()))};
  if (attempt.result == AttemptResult::kBroke) return attempt;
  if (options.gpu && attempt.fault == Fault::kTookTooLong) {
    attempt.reason.emplace_back(
        "from Volta on, a __syncthreads() that not all threads of a block "
        "reach "
        "may wait for ever");
  }
  // Checks say what they found before they abort.
  if (const std::string line = LastLine(printed);
      attempt.fault == Fault::kAborted && !line.empty()) {
    attempt.reason.push_back(absl::StrCat("it printed last: ", line));
  }
  return attempt;
}

// A process whose kernel holds more device memory than this is not used again:
// files that never free it would take all of it in the course of many calls,
// which the course never made.
constexpr int64_t kMostLeaked = int64_t{4} << 30;

// Elements of an output that are kept to recognize it.
std::vector<float> Sample(absl::Span<const float> y, uint64_t seed) {
  constexpr uint64_t kCount = 2000;
  std::vector<float> sample;
  for (uint64_t i = 0; i < kCount; ++i) {
    sample.push_back(y[Mix(seed, i) % y.size()]);
  }
  return sample;
}

}  // namespace

std::string DescribeGrowth(int64_t bytes) {
  return absl::StrFormat(
      "the memory of its process grows by about %.0f MB with each call: it "
      "does not free all that it allocates",
      static_cast<double>(bytes) * 1e-6);
}

bool Runner::IsEarlierResult(const Problem& problem,
                             absl::Span<const float> y) {
  const auto found = earlier_.find(ToString(problem));
  if (found == earlier_.end()) return false;
  const std::vector<float> now = Sample(y, seed_);
  const std::vector<float>& before = found->second;
  // Constant outputs are equal without being an earlier result.
  return std::any_of(before.begin(), before.end(),
                     [&](float value) { return value != before[0]; }) &&
         std::memcmp(now.data(), before.data(), now.size() * sizeof(float)) ==
             0;
}

int64_t Runner::GrowthPerCall() const {
  // The last of a layer's runs are of sizes that it had before: what is kept
  // for each size does not grow with them, nor does what threads are given.
  constexpr size_t kCalls = 4;
  constexpr int64_t kLeastBytes = int64_t{1} << 20;
  if (options_.gpu || memory_.size() <= kCalls) return 0;
  const auto last = memory_.end() - 1, first = last - kCalls;
  for (auto call = first; call != last; ++call) {
    if (call[1] - call[0] < kLeastBytes) return 0;
  }
  return (*last - *first) / static_cast<int64_t>(kCalls);
}

absl::StatusOr<Attempt> Runner::TryInProcess(const Inputs& inputs,
                                             const Manner& manner) {
  const Problem& problem = inputs.problem;
  Attempt attempt;
  const auto skip = [&](const absl::Status& status) -> absl::StatusOr<Attempt> {
    if (!absl::IsResourceExhausted(status)) return status;
    attempt.result = AttemptResult::kSkipped;
    attempt.reason = {absl::StrCat(ToString(problem), ": not tried, ",
                                   OneLine(status.message()))};
    return attempt;
  };
  const absl::StatusOr<SharedTensors> tensors = process_->Map(problem);
  if (!tensors.ok()) return skip(tensors.status());
  Fill(inputs, tensors->x, tensors->k, workers_);
  const uint32_t poison = manner.zeroed ? 0 : RandomPoison(inputs.seed);
  FillBits(poison, tensors->y, workers_);
  KernelCall call;
  call.problem = problem;
  call.warm_ops = manner.warm_ops;
  call.timed_ops = manner.timed_ops;
  call.linger_seconds = manner.linger_seconds;
  absl::StatusOr<CallResult> result = process_->Run(call);
  if (!result.ok()) return skip(result.status());
  attempt.call = *std::move(result);
  memory_.push_back(attempt.call.process_bytes);
  if (!attempt.call.guard.empty()) {
    attempt.result = AttemptResult::kBroke;
    attempt.fault = Fault::kWroteOutside;
    attempt.reason = {
        absl::StrCat(ToString(problem), ": ", OneLine(attempt.call.guard))};
    return attempt;
  }
  // After the run: what is sampled is not yet chosen while the kernel runs.
  attempt.check = CheckOutput(inputs, *tensors, poison,
                              Mix(inputs.seed, 0xc4ec4), workers_);
  if (attempt.check.accuracy) {
    earlier_[ToString(problem)] = Sample(tensors->y, seed_);
  } else if (IsEarlierResult(problem, tensors->y)) {
    attempt.result = AttemptResult::kBroke;
    attempt.fault = Fault::kBrokeRule;
    attempt.reason = {absl::StrCat(ToString(problem),
                                   ": returned the result of an earlier call "
                                   "with other inputs")};
  } else {
    attempt.result = AttemptResult::kWrong;
    attempt.reason = attempt.check.mismatch;
    if (!attempt.call.error.empty()) {
      attempt.reason.insert(attempt.reason.begin(),
                            absl::StrCat("a CUDA call or launch failed: ",
                                         OneLine(attempt.call.error)));
    }
  }
  return attempt;
}

absl::StatusOr<Attempt> Runner::Try(const Problem& problem, Family family,
                                    const Manner& manner) {
  if (process_ == nullptr) {
    absl::StatusOr<std::unique_ptr<KernelProcess>> process = start_(options_);
    if (absl::IsAborted(process.status())) {
      return Failed(problem, Annotate(process.status(), "when it was loaded"),
                    options_, "");
    }
    if (!process.ok()) return process.status();
    process_ = *std::move(process);
    has_started_ = true;
    protection_ = process_->Protection();
  }
  ++runs_;
  const Inputs inputs = {problem, family, Mix(seed_, runs_),
                         /*zero_corners=*/runs_ / 2 % 2 == 1};
  absl::StatusOr<Attempt> attempt = TryInProcess(inputs, manner);
  if (absl::IsAborted(attempt.status())) {
    const std::string printed = process_->Printed();
    Attempt failed = Failed(problem, attempt.status(), options_, printed);
    if (const int64_t growth = GrowthPerCall(); growth > 0) {
      failed.reason.push_back(DescribeGrowth(growth));
    }
    Restart();
    return failed;
  }
  if (attempt.ok() && attempt->call.leaked_bytes > kMostLeaked) Restart();
  return attempt;
}

}  // namespace convlab
