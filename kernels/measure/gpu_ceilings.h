// What the GPU does at best: the ceilings that its kernels are held to.
#ifndef KERNELS_MEASURE_GPU_CEILINGS_H_
#define KERNELS_MEASURE_GPU_CEILINGS_H_

#include "absl/status/statusor.h"
#include "common/record/bench_record.h"

namespace convlab {

// Writes and copies a buffer many times larger than the L2, and does
// fused multiply-adds and tensor core products with operands that look random
// (by mma.sync and, on Hopper, by wgmma; the better counts); of each the best
// sample. Takes about a second. Unavailable without a GPU.
absl::StatusOr<Ceilings> MeasureGpuCeilings();

}  // namespace convlab

#endif  // KERNELS_MEASURE_GPU_CEILINGS_H_
