// Kernel times (op_time.h): the time of an operation on the GPU, from a cold
// cache.
//
//   ASSIGN_OR_RETURN(GpuTimer timer, GpuTimer::Create());
//   ASSIGN_OR_RETURN(const GpuTimes times, timer.Time(run, StoppingRule()));
//
// Before each sample a buffer larger than the second-level cache is written, so
// that nothing of the operation's tensors is in it. A kernel that only waits
// follows. Meanwhile the host queues the whole operation between two events, so
// that the time between them holds the GPU's work and not the host's. The
// operation runs once before the first sample as a warm-up.
#ifndef KERNELS_MEASURE_GPU_TIMER_H_
#define KERNELS_MEASURE_GPU_TIMER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/sm_clock.h"
#include "kernels/measure/stopping.h"

namespace convlab {

struct GpuTimes {
  std::vector<int64_t> samples_ns;
  // The median of the clocks during the samples; absent without NVML.
  std::optional<double> sm_clock_mhz;
};

class GpuTimer {
 public:
  // Starts the operation in the default stream.
  using Run = std::function<absl::Status()>;

  // Unavailable without a GPU.
  static absl::StatusOr<GpuTimer> Create();

  absl::StatusOr<GpuTimes> Time(const Run& run, const StoppingRule& rule);

 private:
  GpuTimer(cuda::Event start, cuda::Event stop, cuda::DeviceBuffer flush,
           std::optional<SmClock> clock)
      : start_(std::move(start)),
        stop_(std::move(stop)),
        flush_(std::move(flush)),
        clock_(clock) {}

  // Takes one sample, in nanoseconds, and appends the current clock to
  // `clocks_mhz`.
  absl::StatusOr<int64_t> TimeOnce(const Run& run,
                                   std::vector<int64_t>& clocks_mhz);

  cuda::Event start_, stop_;
  cuda::DeviceBuffer flush_;
  std::optional<SmClock> clock_;
};

}  // namespace convlab

#endif  // KERNELS_MEASURE_GPU_TIMER_H_
