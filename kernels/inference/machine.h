// The interface to the CPU or the GPU on which a network runs: memory, layers
// and timing. pipeline.h runs every network through it.
#ifndef KERNELS_INFERENCE_MACHINE_H_
#define KERNELS_INFERENCE_MACHINE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/convolution.h"
#include "kernels/inference/inference.h"
#include "kernels/measure/op_time.h"

namespace convlab {

// Pointers are to the machine's memory unless they are named host.
class Machine {
 public:
  virtual ~Machine() = default;

  // The memory for the activations of a slice, in bytes.
  virtual absl::StatusOr<int64_t> ActivationBytes(
      const InferenceOptions& options) = 0;
  // And those that one image takes of them: of the layers' floats, and of what
  // the first fully connected layer reads.
  virtual int64_t ImageBytes(int64_t floats, int64_t flattened) const {
    static_cast<void>(flattened);
    return floats * sizeof(float);
  }
  // The number of images, of `image_bytes` each, that the layers before the
  // first fully connected one process at a time: all of a slice, or as many as
  // stay in the caches.
  virtual int64_t PieceOf(int64_t slice, int64_t image_bytes,
                          const InferenceOptions& options) const {
    static_cast<void>(image_bytes);
    static_cast<void>(options);
    return slice;
  }
  // Memory, freed with the last pointer to it. ResourceExhausted if there is
  // not enough.
  virtual absl::StatusOr<std::shared_ptr<float>> Allocate(int64_t floats) = 0;
  // Places the values where layers can read them; `host` must outlive the
  // result.
  virtual absl::StatusOr<std::shared_ptr<const float>> Place(
      const std::vector<float>& host) = 0;
  // Places the weights [outputs, inputs] of a fully connected layer as
  // FullyConnected reads them; `host` must outlive the result.
  virtual absl::StatusOr<std::shared_ptr<const float>> PlaceMatrix(
      int64_t inputs, int64_t outputs, const std::vector<float>& host) {
    static_cast<void>(inputs);
    static_cast<void>(outputs);
    return Place(host);
  }
  // Bytes allocated since the machine was created; 0 on the CPU, where the
  // process's resource usage has them.
  virtual absl::StatusOr<int64_t> MemoryInUse() = 0;

  // Enlarges `count` images and converts them to floats. `scratch` has room for
  // the bytes of as many enlarged images.
  virtual absl::Status Load(const uint8_t* host_images, int64_t count, int size,
                            int enlarged, float* scratch, float* out) = 0;
  // Runs the convolution and adds its times to `time`.
  virtual absl::Status Convolve(Convolution& convolution, const float* x,
                                const float* k, float* y, OpTime& time) = 0;
  // Adds bias[c] to each of the `area` values of channel c of each image.
  virtual absl::Status AddBias(int64_t batch, int64_t channels, int64_t area,
                               const float* bias, float* values) = 0;
  virtual absl::Status Activate(Activation activation, int64_t count,
                                float* values) = 0;
  // Activation, then pooling; `in` may be changed.
  virtual absl::Status ActivateAndPool(Activation activation,
                                       const MaxPool& pool, int64_t planes,
                                       int64_t size, float* in, float* out) = 0;
  // `weight` comes from PlaceMatrix; `bias` may be null; `scratch` has room for
  // scratch_floats, which may be 0.
  virtual absl::Status FullyConnected(int64_t batch, int64_t inputs,
                                      int64_t outputs, const float* in,
                                      const float* weight, const float* bias,
                                      float* out, float* scratch,
                                      int64_t scratch_floats) = 0;
  // Copies values to host memory.
  virtual absl::Status Download(const float* values, int64_t count,
                                float* host) = 0;
  // The most probable class of each row of `values`, which are changed.
  // `scratch` has room for a byte per row.
  virtual absl::Status Classify(int64_t batch, int classes, float* values,
                                float* scratch, uint8_t* host_labels) = 0;
};

std::unique_ptr<Machine> MakeCpuMachine(Workers& workers);

// With `library_layers` cuDNN and cuBLAS compute the layers. Unavailable if
// there is no usable GPU, or they are missing and asked for.
absl::StatusOr<std::unique_ptr<Machine>> MakeGpuMachine(bool library_layers);

}  // namespace convlab

#endif  // KERNELS_INFERENCE_MACHINE_H_
