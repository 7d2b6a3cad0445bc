// The floor of a convolution: the least time that a machine allows. The
// benchmark applies the formula to the rates measured in its own run; reports
// of milestones, whose records hold no such rates, apply it to the GPU's data
// sheet. Every table says which of the two it shows.
#ifndef COMMON_HARDWARE_FLOOR_H_
#define COMMON_HARDWARE_FLOOR_H_

#include <cstdint>
#include <optional>

#include "common/accuracy/accuracy_class.h"
#include "common/hardware/rates.h"

namespace convlab {

// The number of tensor core products for one product of the definition in this
// class: three for float32, where each factor is split into two halves whose
// smallest product is dropped, and one for the others.
int TensorProducts(AccuracyClass accuracy);

// The fastest rate at which the class can be kept, in TFLOP/s of the
// definition: that of the float32 units, or that of the tensor cores divided by
// TensorProducts. Absent if no such rate is known.
std::optional<double> ClassTflops(AccuracyClass accuracy, const Rates& rates);

// The larger of two times, in ns: `bytes`, each tensor read or written once, at
// the memory's rate, and `flops`, the multiplications and additions of the
// definition, at ClassTflops. The floor depends on the accuracy class because a
// kernel in fp32 cannot take single products of halves: compared with their
// rate, a perfect kernel would reach 33 %. Absent if either rate is not known.
// Direct convolution is assumed: transforms that save multiplications could go
// below.
std::optional<double> FloorNs(int64_t flops, int64_t bytes,
                              AccuracyClass accuracy, const Rates& rates);

}  // namespace convlab

#endif  // COMMON_HARDWARE_FLOOR_H_
