#include "kernels/convolution/cuda/lib/time_model.h"

#include <cmath>

namespace convlab::cuda {

double EstimateNs(const TimeModel& model, double cycles, const Problem& problem,
                  const DeviceLimits& limits) {
  // Of the rate that clock and width of the memory promise.
  constexpr double kSustained = 0.83;
  const double arithmetic_ns = model.per_cycle * cycles / limits.clock_ghz;
  const double memory_ns = model.per_byte *
                           static_cast<double>(problem.min_bytes()) /
                           (kSustained * limits.memory_gbs);
  const double work_ns = std::pow(std::pow(arithmetic_ns, model.overlap) +
                                      std::pow(memory_ns, model.overlap),
                                  1 / model.overlap);
  return 1e3 * model.launch_us + work_ns +
         model.weight_ns * static_cast<double>(problem.kernel_elements());
}

}  // namespace convlab::cuda
