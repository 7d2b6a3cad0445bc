#include "common/hardware/floor.h"

#include <algorithm>

#include "common/accuracy/accuracy.h"

namespace convlab {

int TensorProducts(AccuracyClass accuracy) {
  return IsFloat32(accuracy) ? 3 : 1;
}

std::optional<double> ClassTflops(AccuracyClass accuracy, const Rates& rates) {
  const double tensor =
      std::max(rates.tf32_tflops.value_or(0), rates.fp16_tflops.value_or(0));
  const double tflops = std::max(rates.fp32_tflops.value_or(0),
                                 tensor / TensorProducts(accuracy));
  if (tflops <= 0) return std::nullopt;
  return tflops;
}

std::optional<double> FloorNs(int64_t flops, int64_t bytes,
                              AccuracyClass accuracy, const Rates& rates) {
  const std::optional<double> tflops = ClassTflops(accuracy, rates);
  if (!tflops || rates.memory_gbs.value_or(0) <= 0) return std::nullopt;
  return std::max(static_cast<double>(bytes) / *rates.memory_gbs,
                  static_cast<double>(flops) / *tflops * 1e-3);
}

}  // namespace convlab
