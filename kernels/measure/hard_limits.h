// The rates that the hardware cannot exceed. A result beyond them is an error
// of the measurement: not everything was computed, or not everything was timed.
#ifndef KERNELS_MEASURE_HARD_LIMITS_H_
#define KERNELS_MEASURE_HARD_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "kernels/convolution/problem.h"
#include "kernels/cuda/device.h"

namespace convlab {

struct HardLimits {
  std::optional<double> memory_gbs;
  std::optional<double> arithmetic_tflops;
  const char* arithmetic = "the tensor cores";  // whose rate that is
  int64_t cache_bytes = 0;                      // bytes that need not move
  std::string note;  // what is not checked and why, or empty
};

// The peaks of the GPU's data sheet (common/hardware/rates.h). For a GPU
// without one, the memory's peak by its clock and width, and no limit of
// arithmetic.
HardLimits LimitsOf(const cuda::DeviceFacts& device);

// A CPU has no data sheet here: twice the best rate at which the same run did
// nothing but multiply-adds, which may have been slowed by another program.
HardLimits LimitsOfCpu(double multiply_add_tflops);

// DataLoss if a problem of `bytes` cannot have been done in `ns` by a kernel
// that takes `products` products on tensor cores for each of the definition.
// (Units outside the tensor cores are slower than a third of these, so that
// TensorProducts bounds them too.)
absl::Status CheckLimits(const Problem& problem, int products, int64_t bytes,
                         double ns, const HardLimits& limits);

}  // namespace convlab

#endif  // KERNELS_MEASURE_HARD_LIMITS_H_
