#include "kernels/measure/hard_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/hardware/rates.h"

namespace convlab {

HardLimits LimitsOf(const cuda::DeviceFacts& device) {
  HardLimits limits;
  limits.cache_bytes = device.l2_bytes;
  if (const std::optional<Rates> peaks = DataSheetRates(device.name)) {
    limits.memory_gbs = peaks->memory_gbs;
    limits.arithmetic_tflops = peaks->fp16_tflops;
    return limits;
  }
  limits.memory_gbs =
      MemoryGbs(device.memory_clock_khz, device.memory_bus_bits);
  limits.note = absl::StrCat("results are not checked against ",
                             limits.memory_gbs ? "" : "the memory's or ",
                             "the tensor cores' peak, which is not known for ",
                             device.name);
  return limits;
}

HardLimits LimitsOfCpu(double multiply_add_tflops) {
  HardLimits limits;
  // They may have been measured beside another program or at a lower clock.
  limits.arithmetic_tflops = 2 * multiply_add_tflops;
  limits.arithmetic = "the processor's multiply-adds";
  return limits;
}

absl::Status CheckLimits(const Problem& problem, int products, int64_t bytes,
                         double ns, const HardLimits& limits) {
  const double gbs =
      std::max<int64_t>(0, bytes - limits.cache_bytes) / std::max(ns, 1.0);
  if (limits.memory_gbs && gbs > *limits.memory_gbs) {
    return absl::DataLossError(absl::StrFormat(
        "%.4f ms would need %.0f GB/s, and the memory has %.0f at most: not "
        "everything was computed, or not everything was timed",
        ns * 1e-6, gbs, *limits.memory_gbs));
  }
  // Not an integer, which it may overflow.
  const double tflops = static_cast<double>(problem.flops()) * products /
                        std::max(ns, 1.0) * 1e-3;
  if (limits.arithmetic_tflops && tflops > *limits.arithmetic_tflops) {
    return absl::DataLossError(absl::StrFormat(
        "%.4f ms would need %.3g TFLOP/s, and %s have %.3g at most: not "
        "everything was computed, or not everything was timed",
        ns * 1e-6, tflops, limits.arithmetic, *limits.arithmetic_tflops));
  }
  return absl::OkStatus();
}

}  // namespace convlab
