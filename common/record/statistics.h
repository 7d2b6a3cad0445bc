// Statistics of the samples that a record stores.
#ifndef COMMON_RECORD_STATISTICS_H_
#define COMMON_RECORD_STATISTICS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace convlab {

// The middle sample, or the mean of the two; `samples` is not empty.
inline double Median(std::vector<int64_t> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1
             ? samples[middle]
             : 0.5 * samples[middle - 1] + 0.5 * samples[middle];
}

}  // namespace convlab

#endif  // COMMON_RECORD_STATISTICS_H_
