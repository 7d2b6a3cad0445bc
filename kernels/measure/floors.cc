#include "kernels/measure/floors.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace convlab {

int TensorProducts(AccuracyClass accuracy) {
  return accuracy == AccuracyClass::kFp32 ? 3 : 1;
}

std::optional<double> FloorMs(const Problem& problem, AccuracyClass accuracy,
                              int64_t bytes, const Ceilings& ceilings) {
  const double gbs =
      std::max({ceilings.fill_gbs.value_or(0), ceilings.copy_gbs.value_or(0),
                ceilings.triad_gbs.value_or(0)});
  const double products = TensorProducts(accuracy);
  const double tflops = std::max({ceilings.fp32_tflops.value_or(0),
                                  ceilings.tf32_tflops.value_or(0) / products,
                                  ceilings.fp16_tflops.value_or(0) / products});
  if (gbs <= 0 || tflops <= 0) return std::nullopt;
  return std::max(bytes / gbs * 1e-6, problem.flops() / tflops * 1e-9);
}

HardLimits FindLimits(const cuda::DeviceFacts& device) {
  HardLimits limits;
  limits.cache_bytes = device.l2_bytes;
  if (absl::StrContains(device.name, "H200")) {
    limits.memory_gbs = 4800;
    limits.tensor_tflops = 990;
    return limits;
  }
  if (device.memory_clock_khz > 0 && device.memory_bus_bits > 0) {
    // Two transfers per clock.
    limits.memory_gbs =
        2e-6 * device.memory_clock_khz * device.memory_bus_bits / 8;
  }
  limits.note = absl::StrCat("results are not checked against ",
                             limits.memory_gbs ? "" : "the memory's or ",
                             "the tensor cores' peak, which is not known for ",
                             device.name);
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
  if (limits.tensor_tflops && tflops > *limits.tensor_tflops) {
    return absl::DataLossError(absl::StrFormat(
        "%.4f ms would need %.0f TFLOP/s, and the tensor cores have %.0f at "
        "most: not everything was computed, or not everything was timed",
        ns * 1e-6, tflops, *limits.tensor_tflops));
  }
  return absl::OkStatus();
}

}  // namespace convlab
