// Statistics of the samples that a record stores.
#ifndef COMMON_RECORD_STATISTICS_H_
#define COMMON_RECORD_STATISTICS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace convlab {

// The value below which `share` (0 to 1) of the samples lie, interpolated
// between the two nearest; `samples` is not empty.
inline double Quantile(std::vector<int64_t> samples, double share) {
  std::sort(samples.begin(), samples.end());
  const double place = share * (samples.size() - 1);
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, samples.size() - 1);
  const double low = samples[below], high = samples[above];
  return low + (place - below) * (high - low);
}

// The middle sample, or the mean of the two; `samples` is not empty.
inline double Median(const std::vector<int64_t>& samples) {
  return Quantile(samples, 0.5);
}

// The range in which the middle half of the samples lies.
inline double InterquartileRange(const std::vector<int64_t>& samples) {
  return Quantile(samples, 0.75) - Quantile(samples, 0.25);
}

}  // namespace convlab

#endif  // COMMON_RECORD_STATISTICS_H_
