// The functions of the .cu files: those of layers.h with Error instead of
// absl::Status. This header is small because nvcc parses it once per
// architecture.
#ifndef KERNELS_LAYERS_CUDA_LAUNCHES_H_
#define KERNELS_LAYERS_CUDA_LAUNCHES_H_

#include <cstdint>

#include "common/network/layer.h"
#include "kernels/cuda/error.h"
#include "kernels/layers/cuda/finish_plan.h"
#include "kernels/layers/cuda/matrix_plan.h"
#include "kernels/layers/cuda/plane_bias.h"

namespace convlab::cuda {

Error LaunchEnlarge(const uint8_t* images, int64_t count, int size,
                    int enlarged, float* out, cudaStream_t stream);
Error LaunchAddBias(int64_t batch, int64_t channels, int64_t area,
                    const float* bias, float* values, cudaStream_t stream);
Error LaunchActivate(Activation activation, int64_t count, float* values,
                     cudaStream_t stream);
Error LaunchPoolMax(const MaxPool& pool, const PlaneBias& bias,
                    Activation activation, int64_t planes, int64_t size,
                    const float* in, float* out, cudaStream_t stream);

// A fully connected layer in float32 without tensor cores, from the weights as
// they are.
Error LaunchFullyConnected(int64_t batch, int64_t inputs, int64_t outputs,
                           const float* in, const float* weight,
                           const float* bias, float* out, float* scratch,
                           int64_t scratch_floats, cudaStream_t stream);

// Whether the current device has the tensor cores for the next ones.
Error AskMatrix(bool* runs);
// And the products of warpgroups, for rows that begin at multiples of 16 bytes.
bool RunsMatrixOfWarpgroups(int64_t inputs, int64_t pitch, const float* in);
Error LaunchPackMatrix(const MatrixShape& shape, const float* weight,
                       float* packed);
// `partial` has launch.partial_floats().
Error LaunchMatrix(const MatrixLaunch& launch, const FinishLaunch& finish,
                   const float* in, const float* packed,
                   const ConnectedLayers& layers, float* out, float* partial,
                   cudaStream_t stream);

Error LaunchSoftmax(int64_t batch, int classes, float* values);
Error LaunchLabel(int64_t batch, int classes, const float* values,
                  uint8_t* labels, cudaStream_t stream);

}  // namespace convlab::cuda

#endif  // KERNELS_LAYERS_CUDA_LAUNCHES_H_
