#include "milestones/counts.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/statistics.h"

namespace convlab {
namespace {

// By which a sample is far from the median.
constexpr double kFar = 2;
// Fewer samples do not say which of them is the odd one.
constexpr size_t kFewest = 3;

}  // namespace

absl::Status CheckRepetitions(absl::Span<const int64_t> counts) {
  for (size_t i = 1; i < counts.size(); ++i) {
    if (counts[i] == counts[0]) continue;
    return absl::DataLossError(absl::StrCat(
        "repetition ", i + 1, " has ", counts[i],
        " correct answers, repetition 1 has ", counts[0],
        ": expected the same number, since both compute the same"));
  }
  return absl::OkStatus();
}

absl::Status CheckCounts(absl::Span<const int64_t> counts, int64_t expected,
                         int64_t tolerance, const std::string& where) {
  for (size_t i = 0; i < counts.size(); ++i) {
    // No number of images is near the limits, so this cannot overflow.
    if (std::abs(counts[i] - expected) <= tolerance) continue;
    return absl::DataLossError(absl::StrCat(
        counts.size() > 1 ? absl::StrCat("repetition ", i + 1, " has ") : "",
        counts[i], " correct answers, where ", where,
        tolerance > 0
            ? absl::StrCat(", and ", tolerance, " more or less are allowed")
            : ""));
  }
  return absl::OkStatus();
}

absl::Status JudgeCounts(absl::Span<const int64_t> counts, int64_t tolerance,
                         bool strict, RunRecord& record) {
  absl::Status status = CheckRepetitions(counts);
  bool fails = !status.ok();
  if (const auto expected = ExpectedCorrect(record); status.ok() && expected) {
    status = CheckCounts(
        counts, *expected, tolerance,
        absl::StrCat(record.expected_correct ? "a verified convolution has "
                                             : "the weight file says ",
                     *expected));
    fails = strict;
  }
  if (status.ok()) return status;
  record.count_error = std::string(status.message());
  return fails ? status : absl::OkStatus();
}

std::string DescribeFarSample(
    const std::vector<ConvolutionRecord>& convolutions) {
  double farthest = kFar;
  std::string text;
  for (size_t c = 0; c < convolutions.size(); ++c) {
    const std::vector<int64_t>& samples = convolutions[c].op_time_ns;
    if (samples.size() < kFewest) continue;
    const double median = Median(samples);
    for (size_t i = 0; i < samples.size(); ++i) {
      const auto ns = static_cast<double>(std::max<int64_t>(1, samples[i]));
      const double factor = std::max(ns / median, median / ns);
      if (!(factor >= farthest)) continue;
      farthest = factor;
      text = absl::StrFormat(
          "op time %d lies far from the others in repetition %d: %.3f ms, "
          "their median is %.3f ms",
          c + 1, i + 1, ns * 1e-6, median * 1e-6);
    }
  }
  return text;
}

}  // namespace convlab
