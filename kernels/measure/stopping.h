// How many times to measure.
#ifndef KERNELS_MEASURE_STOPPING_H_
#define KERNELS_MEASURE_STOPPING_H_

#include <cstdint>
#include <string>
#include <vector>

namespace convlab {

// Measuring ends with the first of these:
//   - there are min_samples, and the median is known to within `precision`
//   - there are max_samples
//   - there are kFewestSamples, and max_seconds have passed
struct StoppingRule {
  static constexpr int kFewestSamples = 3;

  int min_samples = 20;
  int max_samples = 300;
  double precision = 0.005;
  double max_seconds = 5;
};

// The standard error of the samples' median as a share of it, were they
// distributed normally: sqrt(pi / 2) * IQR / 1.349 / sqrt(n). Outliers, which
// another user of the machine makes, do not count. There is a sample at least.
double MedianUncertainty(const std::vector<int64_t>& samples);

// Whether measuring ends, `seconds` after it began.
bool EnoughSamples(const std::vector<int64_t>& samples, double seconds,
                   const StoppingRule& rule);

// "at least 20 samples and until ...", for people.
std::string ToString(const StoppingRule& rule);

}  // namespace convlab

#endif  // KERNELS_MEASURE_STOPPING_H_
