// How much a machine does in a second: the rates that a convolution's floor
// (floor.h) and the hard limits of a measurement are computed from.
#ifndef COMMON_HARDWARE_RATES_H_
#define COMMON_HARDWARE_RATES_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace convlab {

// The maker's peaks or what was measured at best. Absent: the machine has no
// such units, or the rate is not known.
struct Rates {
  std::optional<double> memory_gbs;   // GB/s, of device or main memory
  std::optional<double> fp32_tflops;  // TFLOP/s, multiply-adds in float32
  std::optional<double> tf32_tflops;  // dense, on tensor cores; float32 sums
  std::optional<double> fp16_tflops;  // likewise
};

// The peaks in NVIDIA's data sheet, without sparsity, of a GPU by the name that
// the driver gives it ("NVIDIA H200"); absent for a GPU that the table lacks.
std::optional<Rates> DataSheetRates(absl::string_view gpu_name);

// What memory of this clock and width transfers at most, in GB/s: for a GPU
// without a data sheet. Absent unless both are known, that is, above 0.
std::optional<double> MemoryGbs(int64_t clock_khz, int64_t bus_bits);

}  // namespace convlab

#endif  // COMMON_HARDWARE_RATES_H_
