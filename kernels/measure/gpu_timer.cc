#include "kernels/measure/gpu_timer.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "kernels/measure/gpu_loads.h"
#include "kernels/measure/op_time.h"

namespace convlab {
namespace {

// Longer than a host needs to queue most operations. An operation of many
// launches, such as a variant that works in slices, may take longer: its time
// then includes the gaps in which the GPU waited for the host.
constexpr int kWaitMicroseconds = 100;

// What a device that has nothing to do may take to say so, and the share of the
// operation's time that is not worth a refusal.
constexpr double kIdleNs = 30'000;
constexpr double kLateShare = 0.05;

}  // namespace

absl::StatusOr<GpuTimer> GpuTimer::Create() {
  ASSIGN_OR_RETURN(const cuda::DeviceFacts device, cuda::FindDevice());
  ASSIGN_OR_RETURN(cuda::Event start, cuda::Event::Create());
  ASSIGN_OR_RETURN(cuda::Event stop, cuda::Event::Create());
  ASSIGN_OR_RETURN(cuda::DeviceBuffer flush,
                   cuda::DeviceBuffer::Allocate(2 * device.l2_bytes));
  const absl::StatusOr<SmClock> clock = SmClock::Open(device.pci_bus_id);
  return GpuTimer(std::move(start), std::move(stop), std::move(flush),
                  clock.ok() ? std::optional(*clock) : std::nullopt);
}

absl::Status GpuTimer::TimeOnce(const Run& run, Samples& samples) {
  cuda::DropPersistingLines();
  RETURN_IF_ERROR(cuda::FillBytes(flush_.data(), 0, flush_.bytes()));
  RETURN_IF_ERROR(cuda::StartWait(kWaitMicroseconds));
  RETURN_IF_ERROR(start_.Record());
  RETURN_IF_ERROR(run());
  RETURN_IF_ERROR(stop_.Record());
  if (clock_) {
    // A clock that cannot be read is left out.
    const absl::StatusOr<int> megahertz = clock_->Megahertz();
    if (megahertz.ok()) samples.clocks_mhz.push_back(*megahertz);
  }
  // Waits for the default stream, and then for all.
  ASSIGN_OR_RETURN(const int64_t ns, stop_.Since(start_));
  ASSIGN_OR_RETURN(const int64_t late_ns, HostNs(cuda::Synchronize));
  samples.ns.push_back(ns);
  samples.late_ns.push_back(late_ns);
  return absl::OkStatus();
}

absl::StatusOr<GpuTimes> GpuTimer::Time(const Run& run,
                                        const StoppingRule& rule,
                                        const Around& around) {
  using Clock = std::chrono::steady_clock;
  RETURN_IF_ERROR(run());
  RETURN_IF_ERROR(cuda::Synchronize());
  Samples samples;
  const Clock::time_point start = Clock::now();
  std::chrono::duration<double> seconds(0);
  while (!EnoughSamples(samples.ns, seconds.count(), rule)) {
    if (around.before) RETURN_IF_ERROR(around.before());
    RETURN_IF_ERROR(TimeOnce(run, samples));
    if (around.after) RETURN_IF_ERROR(around.after());
    seconds = Clock::now() - start;
  }
  const double median = Median(samples.ns);
  const double late = Median(samples.late_ns);
  if (late > kIdleNs + kLateShare * median) {
    return absl::DataLossError(absl::StrFormat(
        "the GPU still works for %.4f ms when its stream has finished after "
        "%.4f ms: it does not run in the stream that it was given",
        late * 1e-6, median * 1e-6));
  }
  GpuTimes times;
  times.samples_ns = std::move(samples.ns);
  if (!samples.clocks_mhz.empty()) {
    times.sm_clock_mhz = Median(samples.clocks_mhz);
  }
  return times;
}

}  // namespace convlab
