#include "kernels/measure/stopping.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "common/record/statistics.h"

namespace convlab {

double MedianUncertainty(const std::vector<int64_t>& samples) {
  const double median = Median(samples);
  if (median <= 0) return std::numeric_limits<double>::infinity();
  const double deviation = InterquartileRange(samples) / 1.349;
  return std::sqrt(M_PI / 2) * deviation / std::sqrt(samples.size()) / median;
}

bool EnoughSamples(const std::vector<int64_t>& samples, double seconds,
                   const StoppingRule& rule) {
  const int count = static_cast<int>(samples.size());
  if (count == 0) return false;
  return count >= rule.max_samples ||
         (count >= StoppingRule::kFewestSamples &&
          seconds >= rule.max_seconds) ||
         (count >= rule.min_samples &&
          MedianUncertainty(samples) <= rule.precision);
}

std::string ToString(const StoppingRule& rule) {
  return absl::StrFormat(
      "at least %d samples and until the median's standard error is %g %% of "
      "it, at most %d samples or %g s",
      rule.min_samples, 100 * rule.precision, rule.max_samples,
      rule.max_seconds);
}

}  // namespace convlab
