// The functions of the .cu files: those of layers.h with Error instead of
// absl::Status. This header is small because nvcc parses it once per
// architecture.
#ifndef KERNELS_LAYERS_CUDA_LAUNCHES_H_
#define KERNELS_LAYERS_CUDA_LAUNCHES_H_

#include <cstdint>

#include "common/network/layer.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {

Error LaunchEnlarge(const uint8_t* images, int64_t count, int size,
                    int enlarged, float* out);
Error LaunchAddBias(int64_t batch, int64_t channels, int64_t area,
                    const float* bias, float* values);
Error LaunchActivate(Activation activation, int64_t count, float* values);
Error LaunchPoolMax(const MaxPool& pool, Activation activation, int64_t planes,
                    int64_t size, const float* in, float* out);
Error LaunchFullyConnected(int64_t batch, int64_t inputs, int64_t outputs,
                           const float* in, const float* weight,
                           const float* bias, float* out, float* scratch,
                           int64_t scratch_floats);
Error LaunchSoftmax(int64_t batch, int classes, float* values);
Error LaunchLabel(int64_t batch, int classes, const float* values,
                  uint8_t* labels);

}  // namespace convlab::cuda

#endif  // KERNELS_LAYERS_CUDA_LAUNCHES_H_
