#include "kernels/measure/gpu_ceilings.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>

#include "common/status/status.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/gpu_loads.h"
#include "kernels/measure/gpu_timer.h"

namespace convlab {
namespace {

using cuda::Arithmetic;
using cuda::DeviceBuffer;

// Long enough that launch overhead does not matter.
constexpr double kLoadNs = 2e6;

StoppingRule Rule() {
  StoppingRule rule;
  rule.max_samples = 50;
  rule.max_seconds = 1;
  return rule;
}

absl::StatusOr<double> BestNs(GpuTimer& timer, const GpuTimer::Run& run,
                              const StoppingRule& rule = Rule()) {
  ASSIGN_OR_RETURN(const GpuTimes times, timer.Time(run, rule));
  return *std::min_element(times.samples_ns.begin(), times.samples_ns.end());
}

// Returns the TFLOP/s of the fastest of the kinds; absent if the GPU has none
// of them.
absl::StatusOr<std::optional<double>> BestRate(
    GpuTimer& timer, std::initializer_list<Arithmetic> kinds, void* sink) {
  std::optional<double> best;
  for (const Arithmetic kind : kinds) {
    double flops = 0;
    int rounds = 64;
    const auto run = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(flops, cuda::StartArithmetic(kind, rounds, sink));
      return absl::OkStatus();
    };
    StoppingRule once = Rule();
    once.min_samples = once.max_samples = 1;
    ASSIGN_OR_RETURN(double ns, BestNs(timer, run, once));
    if (flops == 0) continue;
    rounds = static_cast<int>(
        std::clamp(rounds * kLoadNs / std::max(ns, 1.0), 64.0, 1e7));
    ASSIGN_OR_RETURN(ns, BestNs(timer, run));
    best = std::max(best.value_or(0), flops / ns / 1e3);
  }
  return best;
}

}  // namespace

absl::StatusOr<Ceilings> MeasureGpuCeilings() {
  ASSIGN_OR_RETURN(const cuda::DeviceFacts device, cuda::FindDevice());
  ASSIGN_OR_RETURN(GpuTimer timer, GpuTimer::Create());
  Ceilings ceilings;
  {
    ASSIGN_OR_RETURN(const int64_t free_bytes, cuda::FreeMemory());
    const int64_t bytes =
        std::min<int64_t>(
            free_bytes / 4,
            std::max<int64_t>(int64_t{1} << 31, 16 * device.l2_bytes)) /
        16 * 16;
    ASSIGN_OR_RETURN(const DeviceBuffer in, DeviceBuffer::Allocate(bytes));
    ASSIGN_OR_RETURN(const DeviceBuffer out, DeviceBuffer::Allocate(bytes));
    ASSIGN_OR_RETURN(const double fill_ns, BestNs(timer, [&] {
                       return cuda::StartFill(out.data(), bytes);
                     }));
    ASSIGN_OR_RETURN(const double memset_ns, BestNs(timer, [&] {
                       return cuda::FillBytes(out.data(), 1, bytes);
                     }));
    ASSIGN_OR_RETURN(const double copy_ns, BestNs(timer, [&] {
                       return cuda::StartCopy(in.data(), out.data(), bytes);
                     }));
    ceilings.fill_gbs = bytes / std::min(fill_ns, memset_ns);
    ceilings.copy_gbs = 2 * bytes / copy_ns;
  }
  ASSIGN_OR_RETURN(const DeviceBuffer sink,
                   DeviceBuffer::Allocate(cuda::kSinkBytes));
  ASSIGN_OR_RETURN(ceilings.fp32_tflops,
                   BestRate(timer, {Arithmetic::kFp32}, sink.data()));
  ASSIGN_OR_RETURN(
      ceilings.tf32_tflops,
      BestRate(timer, {Arithmetic::kMmaTf32, Arithmetic::kWgmmaTf32},
               sink.data()));
  ASSIGN_OR_RETURN(
      ceilings.fp16_tflops,
      BestRate(timer, {Arithmetic::kMmaFp16, Arithmetic::kWgmmaFp16},
               sink.data()));
  return ceilings;
}

}  // namespace convlab
