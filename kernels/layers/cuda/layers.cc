#include "kernels/layers/cuda/layers.h"

#include "kernels/cuda/device.h"
#include "kernels/layers/cuda/launches.h"

namespace convlab::cuda {

absl::Status EnlargeToFloats(const uint8_t* images, int64_t count, int size,
                             int enlarged, float* out) {
  return ToStatus(LaunchEnlarge(images, count, size, enlarged, out));
}

absl::Status AddBias(int64_t batch, int64_t channels, int64_t area,
                     const float* bias, float* values) {
  return ToStatus(LaunchAddBias(batch, channels, area, bias, values));
}

absl::Status Activate(Activation activation, int64_t count, float* values) {
  return ToStatus(LaunchActivate(activation, count, values));
}

absl::Status PoolMax(const MaxPool& pool, Activation activation, int64_t planes,
                     int64_t size, const float* in, float* out) {
  return ToStatus(LaunchPoolMax(pool, activation, planes, size, in, out));
}

absl::Status FullyConnected(int64_t batch, int64_t inputs, int64_t outputs,
                            const float* in, const float* weight,
                            const float* bias, float* out, float* scratch,
                            int64_t scratch_floats) {
  return ToStatus(LaunchFullyConnected(batch, inputs, outputs, in, weight, bias,
                                       out, scratch, scratch_floats));
}

absl::Status Softmax(int64_t batch, int classes, float* values) {
  return ToStatus(LaunchSoftmax(batch, classes, values));
}

absl::Status Label(int64_t batch, int classes, const float* values,
                   uint8_t* labels) {
  return ToStatus(LaunchLabel(batch, classes, values, labels));
}

}  // namespace convlab::cuda
