// The rates of a machine, from which a convolution's floor (floor.h) and the
// hard limits of a measurement are computed.
#ifndef COMMON_HARDWARE_RATES_H_
#define COMMON_HARDWARE_RATES_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace convlab {

// Either the vendor's peaks or the best measured rates. A rate is absent if the
// machine has no such units or the rate is not known.
struct Rates {
  std::optional<double> memory_gbs;   // GB/s, of device or main memory
  std::optional<double> fp32_tflops;  // TFLOP/s, multiply-adds in float32
  std::optional<double> tf32_tflops;  // dense, on tensor cores; float32 sums
  std::optional<double> fp16_tflops;  // likewise
};

// The peaks in NVIDIA's data sheet, without sparsity, of the GPU with the
// driver's name `gpu_name` ("NVIDIA H200"); absent if the table lacks it.
std::optional<Rates> DataSheetRates(absl::string_view gpu_name);

// The peak rate of memory of this clock and width in GB/s, for a GPU without a
// data sheet. Absent unless both are known, that is, above 0.
std::optional<double> MemoryGbs(int64_t clock_khz, int64_t bus_bits);

}  // namespace convlab

#endif  // COMMON_HARDWARE_RATES_H_
