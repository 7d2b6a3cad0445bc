// The ceilings of the GPU, to which its kernels are compared.
#ifndef KERNELS_MEASURE_GPU_CEILINGS_H_
#define KERNELS_MEASURE_GPU_CEILINGS_H_

#include "absl/status/statusor.h"
#include "common/record/bench_record.h"

namespace convlab {

// Measures writing and copying a buffer many times larger than the L2, fused
// multiply-adds, and tensor core products with operands that look random (by
// mma.sync and, on Hopper, by wgmma; the faster counts). Each rate is that of
// the best sample. Takes about a second. Unavailable without a GPU.
absl::StatusOr<Ceilings> MeasureGpuCeilings();

}  // namespace convlab

#endif  // KERNELS_MEASURE_GPU_CEILINGS_H_
