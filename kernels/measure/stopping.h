// The rule that decides how many samples are taken.
#ifndef KERNELS_MEASURE_STOPPING_H_
#define KERNELS_MEASURE_STOPPING_H_

#include <cstdint>
#include <string>
#include <vector>

namespace convlab {

// Measuring ends with the first of these:
//   - there are min_samples and kFewestSamples, and the median is known to
//   within `precision`
//   - there are max_samples
//   - there are kFewestSamples, and max_seconds have passed
struct StoppingRule {
  static constexpr int kFewestSamples = 3;

  int min_samples = 20;
  int max_samples = 300;
  double precision = 0.005;
  double max_seconds = 5;
};

// The relative standard error of the samples' median for a normal distribution:
// sqrt(pi / 2) * IQR / 1.349 / sqrt(n). The IQR makes it insensitive to
// outliers, which other users of the machine cause. Requires at least one
// sample.
double MedianUncertainty(const std::vector<int64_t>& samples);

// Whether measuring ends, given that `seconds` have passed since it began.
bool EnoughSamples(const std::vector<int64_t>& samples, double seconds,
                   const StoppingRule& rule);

// The rule in words: "at least 20 samples and until ...".
std::string ToString(const StoppingRule& rule);

}  // namespace convlab

#endif  // KERNELS_MEASURE_STOPPING_H_
