#include "reports/quantities.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/statistics.h"

namespace convlab {
namespace {

// `samples` is sorted.
double Quantile(const std::vector<int64_t>& samples, double share) {
  const double place = share * static_cast<double>(samples.size() - 1);
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, samples.size() - 1);
  const double part = place - static_cast<double>(below);
  return static_cast<double>(samples[below]) * (1 - part) +
         static_cast<double>(samples[above]) * part;
}

}  // namespace

std::string Seconds(double seconds) {
  return absl::StrFormat("%.*f",
                         seconds < 0.1 ? 6
                         : seconds < 1 ? 4
                                       : 3,
                         seconds);
}

std::string Milliseconds(double nanoseconds) {
  return absl::StrFormat("%.3f", nanoseconds * 1e-6);
}

std::string Ratio(double slower, double faster) {
  return slower > 0 && faster > 0 ? absl::StrFormat("%.2f×", slower / faster)
                                  : "–";
}

std::string Count(int64_t count) {
  std::string digits = absl::StrCat(count);
  for (size_t end = digits.size(); end > 3; end -= 3) {
    if (digits[end - 4] != '-') digits.insert(end - 3, ",");
  }
  return digits;
}

std::string Plural(int64_t count, const char* noun) {
  return absl::StrCat(Count(count), " ", noun, count == 1 ? "" : "s");
}

Spread SpreadOf(std::vector<int64_t> samples) {
  std::sort(samples.begin(), samples.end());
  return {Median(samples), Quantile(samples, 0.25), Quantile(samples, 0.75),
          static_cast<double>(samples.front()), samples.size()};
}

std::vector<int64_t> SumSamples(
    const std::vector<ConvolutionRecord>& convolutions) {
  std::vector<int64_t> sums;
  for (const ConvolutionRecord& convolution : convolutions) {
    if (&convolution == &convolutions.front()) {
      sums = convolution.op_time_ns;
      continue;
    }
    if (convolution.op_time_ns.size() != sums.size()) return {};
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i] += convolution.op_time_ns[i];
    }
  }
  return sums;
}

Difference Compare(const Spread& a, const Spread& b) {
  if (std::min(a.samples, b.samples) < kSamplesForSpread) {
    return Difference::kUnknown;
  }
  return a.high < b.low || b.high < a.low ? Difference::kBeyondSpread
                                          : Difference::kWithinSpread;
}

std::string Name(Difference difference) {
  switch (difference) {
    case Difference::kUnknown:
      return "spread not known";
    case Difference::kWithinSpread:
      return "within the spread";
    case Difference::kBeyondSpread:
      return "beyond the spread";
  }
  return "";
}

}  // namespace convlab
