// How long cuDNN would take, so that a plan can say where it is the better one.
#ifndef KERNELS_OPERATION_CUDA_CUDNN_ESTIMATE_H_
#define KERNELS_OPERATION_CUDA_CUDNN_ESTIMATE_H_

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/operation/operation.h"

namespace convlab::cuda {

// Nanoseconds of its best plan, in float32 or for tensors of halves, for a
// valid operation without its epilogue, from a warm cache.
double EstimateCudnnNs(const Operation& operation, const DeviceLimits& limits);

}  // namespace convlab::cuda

#endif  // KERNELS_OPERATION_CUDA_CUDNN_ESTIMATE_H_
