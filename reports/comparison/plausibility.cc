// Whether a run can be believed.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/accuracy/accuracy.h"
#include "common/hardware/floor.h"
#include "common/record/statistics.h"
#include "reports/comparison/candidates.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

// Bytes that no GPU of the data sheets keeps in its L2 cache; the others must
// have come from memory.
constexpr int64_t kLargestCacheBytes = int64_t{128} << 20;

// How much an event's clock may deviate from the host's.
constexpr double kClockDifferenceNs = 1000;

constexpr absl::string_view kOpTimeLabel = "Op Time: ";

using Reasons = std::vector<std::string>;

void CheckSealState(const Candidate& candidate, const RankingOptions& options,
                    bool verified, Reasons& reasons) {
  switch (candidate.run->seal) {
    case SealState::kIntact:
      return;
    case SealState::kEdited:
      reasons.emplace_back("edited: its seal does not fit its content");
      return;
    case SealState::kOtherKey:
      reasons.emplace_back(options.keyed
                               ? "not sealed with the key of --seal_key"
                               : "sealed with a key, which --seal_key names");
      return;
    case SealState::kUnsealed:
      if (options.keyed || verified) {
        reasons.emplace_back(
            "no seal, which every run with a verification has");
      }
  }
}

// Whether there is a verification, and what it says.
bool CheckVerification(const Candidate& candidate, Reasons& reasons) {
  bool verified = false;
  for (const ConvolutionRecord& convolution : candidate.convolutions) {
    const auto& verification =
        candidate.record().variants.at(convolution.variant).verification;
    if (!verification) {
      // Older runs of the ladder verified each variant and kept its error.
      if (candidate.rung == nullptr || candidate.rung->relative_error <= 0) {
        reasons.emplace_back(
            "not verified: the program that made it did not check its results");
        return false;
      }
      continue;
    }
    verified = true;
    std::string reason;
    if (!IsRight(*verification)) {
      reason = absl::StrCat(
          "the judge calls it ", verification->outcome,
          verification->reason.empty() ? "" : ": ",
          verification->reason.empty() ? "" : verification->reason[0]);
    } else if (verification->judge_version < 1 ||
               verification->problems_right < 1) {
      reason = "not verified: its verification tried nothing";
    } else if (verification->quick) {
      reason =
          "judged by --quick, on the network's own layers alone; judge it "
          "without";
    }
    if (!reason.empty()) {
      reasons.push_back(std::move(reason));
      return verified;
    }
  }
  return verified;
}

// The error that the class allows, by each convolution's length of sums.
void CheckErrors(const Candidate& candidate, Reasons& reasons) {
  const std::optional<AccuracyClass> accuracy =
      FindAccuracyClass(candidate.accuracy_class);
  if (!accuracy) {
    reasons.push_back(
        absl::StrCat("unknown class '", candidate.accuracy_class, "'"));
    return;
  }
  for (const ConvolutionRecord& one : candidate.convolutions) {
    const auto& verification =
        candidate.record().variants.at(one.variant).verification;
    const double error = verification     ? verification->relative_error
                         : candidate.rung ? candidate.rung->relative_error
                                          : 0;
    const double most = MaxRelativeError(
        *accuracy, one.channels * one.kernel_size * one.kernel_size);
    if (error <= most) continue;
    reasons.push_back(
        absl::StrFormat("a relative error of %.0e, where class %s allows %.0e",
                        error, candidate.accuracy_class, most));
    return;
  }
}

void CheckCounts(const Candidate& candidate, const RankingOptions& options,
                 Reasons& reasons) {
  const RunRecord& record = candidate.record();
  std::optional<int64_t> expected = ExpectedCorrect(record);
  const auto own = options.correct.find(options.size);
  if (own != options.correct.end()) expected = own->second;
  if (!expected) {
    reasons.emplace_back(
        "its weight file does not say how many answers are right; --correct "
        "does");
    return;
  }
  const int64_t tolerance =
      MaxChangedAnswers(FindAccuracyClass(candidate.accuracy_class)
                            .value_or(AccuracyClass::kFp32));
  const auto check = [&](int64_t correct, const std::string& where) {
    if (std::abs(correct - *expected) <= tolerance) return true;
    reasons.push_back(absl::StrCat(
        Count(correct), " correct answers", where, ", expected ",
        Count(*expected), tolerance > 0 ? absl::StrCat(" ± ", tolerance) : ""));
    return false;
  };
  const LadderRun* rung = candidate.rung;
  if (!check(rung != nullptr ? rung->correct : record.correct, "")) return;
  const std::vector<int64_t>& counts =
      rung != nullptr ? rung->repetitions_correct : record.repetitions_correct;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!check(counts[i], absl::StrCat(" in repetition ", i + 1))) return;
  }
}

void CheckTimes(const Candidate& candidate, Reasons& reasons) {
  const RunRecord& record = candidate.record();
  const auto accuracy = FindAccuracyClass(candidate.accuracy_class);
  const std::optional<Rates> rates =
      record.device == "gpu" ? DataSheetRates(record.gpu.name) : std::nullopt;
  int64_t total_ns = 0;
  for (size_t i = 0; i < candidate.convolutions.size(); ++i) {
    const ConvolutionRecord& one = candidate.convolutions[i];
    const std::vector<int64_t>& samples = one.*candidate.samples();
    if (samples.empty()) {
      reasons.emplace_back(
          "its op time does not count, and it has no times of the whole "
          "operation");
      return;
    }
    for (const int64_t ns : samples) total_ns += ns;
    const double time = Median(samples);
    if (!one.kernel_time_ns.empty() &&
        Median(one.op_time_ns) + kClockDifferenceNs <
            Median(one.kernel_time_ns)) {
      reasons.push_back(absl::StrCat("impossible: op time ", i + 1, ", ",
                                     Milliseconds(Median(one.op_time_ns)),
                                     " ms, is below its kernel time, ",
                                     Milliseconds(Median(one.kernel_time_ns)),
                                     " ms"));
    }
    if (!rates || !accuracy) continue;
    const std::optional<double> floor = FloorNs(
        one.flops, std::max<int64_t>(0, one.min_bytes - kLargestCacheBytes),
        *accuracy, *rates);
    if (floor && time < *floor) {
      reasons.push_back(
          absl::StrCat("impossible: time ", i + 1, ", ", Milliseconds(time),
                       " ms, is below the floor of ", record.gpu.name, ", ",
                       Milliseconds(*floor), " ms"));
    }
  }
  if (record.usage.elapsed_ns > 0 && total_ns > record.usage.elapsed_ns) {
    reasons.push_back(
        absl::StrCat("impossible: its samples add up to ",
                     Milliseconds(total_ns), " ms, and the program ran for ",
                     Milliseconds(record.usage.elapsed_ns), " ms"));
  }
}

// The value after `label` in a printed line, and how far rounding may have
// moved it: seconds have a fixed number of decimals, everything else six
// digits.
struct Printed {
  double value = 0;
  double rounding = 0;
  bool milliseconds = false;
};
std::optional<Printed> ReadPrinted(absl::string_view line,
                                   absl::string_view label) {
  if (!absl::ConsumePrefix(&line, label)) return std::nullopt;
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  Printed printed;
  if (!absl::SimpleAtod(words[0], &printed.value)) return std::nullopt;
  printed.milliseconds = words.size() > 1 && words[1] == "ms";
  printed.rounding = 5.1e-6 * std::abs(printed.value);
  if (label == kOpTimeLabel && !printed.milliseconds) {
    const size_t point = words[0].find('.');
    const size_t decimals =
        point == absl::string_view::npos ? 0 : words[0].size() - point - 1;
    printed.rounding = 0.51 * std::pow(10, -static_cast<double>(decimals));
  }
  return printed;
}

// The lines of standard output that belong to the candidate: all, or in a run
// of the ladder those after its heading.
std::vector<std::string> OutputOf(const Candidate& candidate) {
  std::vector<std::string> lines;
  bool ours = candidate.rung == nullptr;
  for (const std::string& text : candidate.record().output) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      if (candidate.rung != nullptr && absl::StartsWith(line, "== ")) {
        ours = line == absl::StrCat("== ", candidate.rung->variant, " ==");
      } else if (ours) {
        lines.emplace_back(line);
      }
    }
  }
  return lines;
}

// The course's lines, which were printed from the same numbers.
void CheckOutput(const Candidate& candidate, Reasons& reasons) {
  const RunRecord& record = candidate.record();
  size_t op_times = 0;
  const std::vector<ConvolutionRecord>& convolutions = candidate.convolutions;
  for (const std::string& line : OutputOf(candidate)) {
    if (const auto printed = ReadPrinted(line, kOpTimeLabel)) {
      const size_t i = op_times++;
      if (i >= convolutions.size()) continue;
      const double unit = printed->milliseconds ? 1e6 : 1e9;
      const double ns = Median(convolutions[i].op_time_ns);
      if (std::abs(printed->value - ns / unit) > printed->rounding) {
        reasons.push_back(absl::StrCat("it printed '", line,
                                       "', but the median of its samples is ",
                                       Milliseconds(ns), " ms"));
        return;
      }
    }
    for (const char* label : {"Correctness: ", "Test Accuracy: "}) {
      const auto printed = ReadPrinted(line, label);
      if (!printed) continue;
      const int64_t correct =
          candidate.rung != nullptr ? candidate.rung->correct : record.correct;
      const double share =
          static_cast<double>(correct) / static_cast<double>(record.size);
      if (std::abs(printed->value - share) <= printed->rounding) continue;
      reasons.push_back(absl::StrCat("it printed '", line, "', but has ",
                                     Count(correct), " correct answers"));
      return;
    }
  }
  if (op_times > 0 && op_times != convolutions.size()) {
    reasons.push_back(absl::StrCat(
        "it printed ", Plural(static_cast<int64_t>(op_times), "op time"),
        ", but has ", convolutions.size(), " convolutions"));
  }
}

}  // namespace

std::vector<std::string> ReasonsAgainst(const Candidate& candidate,
                                        const RankingOptions& options) {
  if (candidate.rung != nullptr && !candidate.rung->failure.empty()) {
    return {candidate.rung->failure};
  }
  Reasons reasons;
  const bool verified = CheckVerification(candidate, reasons);
  CheckSealState(candidate, options, verified, reasons);
  if (reasons.empty()) CheckErrors(candidate, reasons);
  CheckCounts(candidate, options, reasons);
  CheckTimes(candidate, reasons);
  CheckOutput(candidate, reasons);
  return reasons;
}

}  // namespace convlab
