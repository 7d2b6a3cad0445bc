// The layers around the convolutions by cuDNN and cuBLAS, for the GPU baseline:
// the counterparts of kernels/layers/layers.h, with the same meaning.
#ifndef KERNELS_BASELINE_LAYERS_H_
#define KERNELS_BASELINE_LAYERS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/network/network.h"

namespace convlab {

// Every pointer is to device memory, every tensor row-major float32, sizes are
// positive. A function starts its work in the default stream and need not wait
// for the end.
class BaselineLayers {
 public:
  virtual ~BaselineLayers() = default;

  // Adds bias[c] to each of the `area` values of channel c of each image.
  virtual absl::Status AddBias(int64_t batch, int64_t channels, int64_t area,
                               const float* bias, float* values) = 0;
  // Applies the activation to `count` values in place.
  virtual absl::Status Activate(Activation activation, int64_t count,
                                float* values) = 0;
  virtual absl::Status PoolMax(const MaxPool& pool, int64_t planes,
                               int64_t size, const float* in, float* out) = 0;
  // A null bias is none.
  virtual absl::Status FullyConnected(int64_t batch, int64_t inputs,
                                      int64_t outputs, const float* in,
                                      const float* weight, const float* bias,
                                      float* out) = 0;
  // In place.
  virtual absl::Status Softmax(int64_t batch, int64_t classes,
                               float* values) = 0;
};

// Unavailable, with the reason, without a GPU, cuDNN or cuBLAS.
absl::StatusOr<std::unique_ptr<BaselineLayers>> MakeBaselineLayers();

}  // namespace convlab

#endif  // KERNELS_BASELINE_LAYERS_H_
