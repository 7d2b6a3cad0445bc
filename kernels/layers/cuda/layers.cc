#include "kernels/layers/cuda/layers.h"

#include "kernels/cuda/device.h"
#include "kernels/layers/cuda/launches.h"

namespace convlab::cuda {

absl::Status EnlargeToFloats(const uint8_t* images, int64_t count, int size,
                             int enlarged, float* out, CUstream_st* stream) {
  return ToStatus(LaunchEnlarge(images, count, size, enlarged, out, stream));
}

absl::Status AddBias(int64_t batch, int64_t channels, int64_t area,
                     const float* bias, float* values, CUstream_st* stream) {
  return ToStatus(LaunchAddBias(batch, channels, area, bias, values, stream));
}

absl::Status Activate(Activation activation, int64_t count, float* values,
                      CUstream_st* stream) {
  return ToStatus(LaunchActivate(activation, count, values, stream));
}

absl::Status PoolMax(const MaxPool& pool, Activation activation, int64_t planes,
                     int64_t size, const float* in, float* out,
                     CUstream_st* stream, const PlaneBias& bias) {
  return ToStatus(
      LaunchPoolMax(pool, bias, activation, planes, size, in, out, stream));
}

absl::Status Softmax(int64_t batch, int classes, float* values) {
  return ToStatus(LaunchSoftmax(batch, classes, values));
}

absl::Status Label(int64_t batch, int classes, const float* values,
                   uint8_t* labels, CUstream_st* stream) {
  return ToStatus(LaunchLabel(batch, classes, values, labels, stream));
}

}  // namespace convlab::cuda
