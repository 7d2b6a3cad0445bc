// The functions of the .cu files. Small, because nvcc parses it once per
// architecture.
#ifndef KERNELS_OPERATION_CUDA_LAUNCHES_H_
#define KERNELS_OPERATION_CUDA_LAUNCHES_H_

#include <cstdint>

#include "common/network/layer.h"
#include "kernels/cuda/error.h"
#include "kernels/operation/cuda/general_plan.h"

namespace convlab::cuda {

// Once, on the current device, before the plan's first launch.
Error PrepareGeneral(GeneralPlan* plan);
// y = activation(sums + bias); bias may be null.
Error LaunchGeneral(const GeneralPlan& plan, const void* x, const void* k,
                    const void* bias, void* y, cudaStream_t stream);

// A copy of `planes` planes of height x width amid zeros, as floats and with
// the channels first.
struct Padding {
  int64_t planes;  // channels of all images
  int channels, height, width, top, left;
  int padded_height, padded_width;
  Steps in;     // of x
  bool halves;  // x
};
Error LaunchPad(const Padding& padding, const void* x, float* padded,
                bool overlaps, cudaStream_t stream);

// Max pooling of planes of height x width, or none, then bias and activation.
// Without pooling `sums` and `y` may be the same.
struct Finish {
  int64_t planes;  // channels of all images
  int channels, height, width;
  int out_height, out_width;
  MaxPool pool;
  Activation activation;
  Steps out;    // of y
  bool halves;  // y and the bias
};
Error LaunchFinish(const Finish& finish, const float* sums, const void* bias,
                   void* y, bool overlaps, cudaStream_t stream);

}  // namespace convlab::cuda

#endif  // KERNELS_OPERATION_CUDA_LAUNCHES_H_
