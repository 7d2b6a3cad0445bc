// Bounds of a convolution's time: the floor that the machine's measured
// ceilings allow, and the hard limits beyond which a result is an error.
#ifndef KERNELS_MEASURE_FLOORS_H_
#define KERNELS_MEASURE_FLOORS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/record/bench_record.h"
#include "kernels/convolution/accuracy.h"
#include "kernels/convolution/problem.h"
#include "kernels/cuda/device.h"

namespace convlab {

// How many products tensor cores take for one of the definition in this class:
// three for fp32, where each factor is split into two of lower precision, and
// one for the others.
int TensorProducts(AccuracyClass accuracy);

// The larger of two times, in ms: `bytes` at the best memory rate of the
// ceilings, and the problem's FLOPs at the best rate that keeps the class. That
// is, for fp32: float32 units, or tensor cores with three products for one; for
// the others one product on any of the units. Absent if the ceilings hold no
// memory rate or no arithmetic rate. Direct convolution is assumed: transforms
// that save multiplications could go below.
std::optional<double> FloorMs(const Problem& problem, AccuracyClass accuracy,
                              int64_t bytes, const Ceilings& ceilings);

// What the hardware cannot exceed.
struct HardLimits {
  std::optional<double> memory_gbs;
  std::optional<double> tensor_tflops;  // dense FP16
  int64_t cache_bytes = 0;              // bytes that need not move
  std::string note;                     // what is not checked and why, or empty
};

// The H200's by its data sheet, 4.8 TB/s and 990 TFLOP/s; another GPU's memory
// by its clock and width, and no limit of arithmetic.
HardLimits FindLimits(const cuda::DeviceFacts& device);

// DataLoss if a problem of `bytes` cannot have been done in `ns` by who issues
// so many products for each of the definition. (Units outside the tensor cores
// are slower than a third of these, so that TensorProducts bounds them too.)
absl::Status CheckLimits(const Problem& problem, int products, int64_t bytes,
                         double ns, const HardLimits& limits);

}  // namespace convlab

#endif  // KERNELS_MEASURE_FLOORS_H_
