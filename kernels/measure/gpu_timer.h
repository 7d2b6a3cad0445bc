// Kernel times (op_time.h): the time of an operation on the GPU, from a cold
// cache.
//
//   ASSIGN_OR_RETURN(GpuTimer timer, GpuTimer::Create());
//   ASSIGN_OR_RETURN(const GpuTimes times, timer.Time(run, StoppingRule()));
//
// Before each sample a buffer larger than the second-level cache is written, so
// that nothing of the operation's tensors is in it, nor kept there by an
// earlier kernel's wish. A kernel that only waits follows. Meanwhile the host
// queues the whole operation between two events, so that the time between them
// holds the GPU's work and not the host's. The operation runs once before the
// first sample as a warm-up.
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

  // What is done round each sample and not timed; may be null. `after` is
  // called when the device is idle.
  struct Around {
    Run before, after;
  };

  // Takes samples until the rule is satisfied. DataLoss if the GPU mostly still
  // works when the stream that the events are in has finished: an operation in
  // a stream that waits for no other would have no time. Other errors are those
  // of the calls.
  absl::StatusOr<GpuTimes> Time(const Run& run, const StoppingRule& rule,
                                const Around& around = {});

 private:
  GpuTimer(cuda::Event start, cuda::Event stop, cuda::DeviceBuffer flush,
           std::optional<SmClock> clock)
      : start_(std::move(start)),
        stop_(std::move(stop)),
        flush_(std::move(flush)),
        clock_(clock) {}

  struct Samples {
    std::vector<int64_t> ns;
    std::vector<int64_t> late_ns;  // the device's work after the last event
    std::vector<int64_t> clocks_mhz;
  };
  absl::Status TimeOnce(const Run& run, Samples& samples);

  cuda::Event start_, stop_;
  cuda::DeviceBuffer flush_;
  std::optional<SmClock> clock_;
};

}  // namespace convlab

#endif  // KERNELS_MEASURE_GPU_TIMER_H_
