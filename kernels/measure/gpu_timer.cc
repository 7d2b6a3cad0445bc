#include "kernels/measure/gpu_timer.h"

#include <chrono>

#include "common/record/statistics.h"
#include "common/status/status.h"
#include "kernels/measure/gpu_loads.h"

namespace convlab {
namespace {

// Longer than a host needs to queue most operations. An operation of many
// launches, such as a variant that works in slices, may take longer: its time
// then includes the gaps in which the GPU waited for the host.
constexpr int kWaitMicroseconds = 100;

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

absl::StatusOr<int64_t> GpuTimer::TimeOnce(const Run& run,
                                           std::vector<int64_t>& clocks_mhz) {
  RETURN_IF_ERROR(cuda::FillBytes(flush_.data(), 0, flush_.bytes()));
  RETURN_IF_ERROR(cuda::StartWait(kWaitMicroseconds));
  RETURN_IF_ERROR(start_.Record());
  RETURN_IF_ERROR(run());
  RETURN_IF_ERROR(stop_.Record());
  if (clock_) {
    // A clock that cannot be read is left out.
    const absl::StatusOr<int> megahertz = clock_->Megahertz();
    if (megahertz.ok()) clocks_mhz.push_back(*megahertz);
  }
  return stop_.Since(start_);
}

absl::StatusOr<GpuTimes> GpuTimer::Time(const Run& run,
                                        const StoppingRule& rule) {
  using Clock = std::chrono::steady_clock;
  RETURN_IF_ERROR(run());
  RETURN_IF_ERROR(cuda::Synchronize());
  GpuTimes times;
  std::vector<int64_t> clocks_mhz;
  const Clock::time_point start = Clock::now();
  std::chrono::duration<double> seconds(0);
  while (!EnoughSamples(times.samples_ns, seconds.count(), rule)) {
    ASSIGN_OR_RETURN(const int64_t ns, TimeOnce(run, clocks_mhz));
    times.samples_ns.push_back(ns);
    seconds = Clock::now() - start;
  }
  if (!clocks_mhz.empty()) times.sm_clock_mhz = Median(clocks_mhz);
  return times;
}

}  // namespace convlab
