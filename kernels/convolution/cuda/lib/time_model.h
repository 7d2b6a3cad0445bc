// How long a kernel will take, by its plan: what KernelVariant::estimate_ns is
// made of. Free of CUDA, as device_limits.h is.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_TIME_MODEL_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_TIME_MODEL_H_

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// The constants of one variant, fitted to times of 1,112 problems on an H200:
// the course's layers with 1 to 10,000 images, their neighbours, and random
// problems of 1 to 32 channels, 2 to 64 filters of 1 to 11 rows and 2^20 to
// 2^37 FLOPs (docs/journal/estimates.md).
struct TimeModel {
  double launch_us;    // before and after the kernel's work
  double per_cycle;    // what a cycle of the plan's own cost is worth
  double per_byte;     // what a byte at the memory's sustained rate is worth
  double weight_ns;    // of one weight: the arrangement of the filters
  double overlap = 1;  // 1: cycles and bytes add up; large: the longer counts
};

// Nanoseconds of a plan whose own cost is `cycles` of the multiprocessors'
// clock, which move the problem's least bytes.
double EstimateNs(const TimeModel& model, double cycles, const Problem& problem,
                  const DeviceLimits& limits);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_TIME_MODEL_H_
