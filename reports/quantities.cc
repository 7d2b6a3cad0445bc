#include "reports/quantities.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/hardware/floor.h"
#include "common/record/statistics.h"

namespace convlab {
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

std::string MillisecondsOf(const std::vector<double>& nanoseconds) {
  return absl::StrJoin(nanoseconds, " + ", [](std::string* out, double ns) {
    absl::StrAppend(out, Milliseconds(ns));
  });
}

std::string Ratio(const std::optional<double>& ratio) {
  return ratio ? absl::StrFormat("%.2f×", *ratio) : "–";
}

std::string Ratio(double slower, double faster) {
  return Ratio(slower > 0 && faster > 0 ? std::optional(slower / faster)
                                        : std::nullopt);
}

std::string FloorText(const Rates& rates, absl::string_view source) {
  return absl::StrFormat(
      "The floor is the least time that a kernel can take: to move every "
      "tensor once, at %.2f TB/s, or to multiply at the fastest rate that "
      "keeps the accuracy class, whichever is longer. That rate is %.0f "
      "TFLOP/s in class fp32, in which tensor cores take three products of "
      "halves for one, and %.0f TFLOP/s in the others. The rates are %s.",
      rates.memory_gbs.value_or(0) * 1e-3,
      ClassTflops(AccuracyClass::kFp32, rates).value_or(0),
      ClassTflops(AccuracyClass::kFp16, rates).value_or(0), source);
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

std::string DeviceOf(const RunRecord& record) {
  if (record.device == "gpu") return record.gpu.name;
  return absl::StrCat(record.host.cpu, ", ", CpuUse(record));
}

Spread SpreadOf(std::vector<int64_t> samples) {
  std::sort(samples.begin(), samples.end());
  return {Median(samples), Quantile(samples, 0.25), Quantile(samples, 0.75),
          static_cast<double>(samples.front()), samples.size()};
}

Spread SpreadOfSum(const std::vector<ConvolutionRecord>& convolutions,
                   std::vector<int64_t> ConvolutionRecord::*samples) {
  std::vector<int64_t> sums;
  double medians = 0;
  for (const ConvolutionRecord& convolution : convolutions) {
    medians += Median(convolution.*samples);
  }
  for (const ConvolutionRecord& convolution : convolutions) {
    const std::vector<int64_t>& times = convolution.*samples;
    if (sums.empty()) sums.resize(times.size());
    if (times.size() != sums.size()) {
      sums.clear();
      break;
    }
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += times[i];
  }
  Spread spread = sums.empty() ? Spread() : SpreadOf(std::move(sums));
  spread.median = medians;
  return spread;
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
