// A network whose images and answers are in the memory of the GPU, and which is
// queued in a stream like a kernel.
//
//   ASSIGN_OR_RETURN(auto network, CompileForDevice(...));
//   ASSIGN_OR_RETURN(auto replay, Record(*network, {images, count, logits}));
//   RETURN_IF_ERROR(replay(stream));
#ifndef KERNELS_COMPILED_DEVICE_NETWORK_H_
#define KERNELS_COMPILED_DEVICE_NETWORK_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/weights/weights.h"
#include "kernels/convolution/convolution.h"

namespace convlab {

// Bytes come as they are in a data set and are enlarged; floats have the
// network's size.
enum class Pixels { kBytes, kFloats };

class DeviceNetwork {
 public:
  virtual ~DeviceNetwork() = default;

  // Makes ready what `count` images need, which is kept. Queue does it, too;
  // after it Queue neither allocates nor waits.
  virtual absl::Status Prepare(int64_t count) = 0;

  // Queues the work from images [count, size, size] to logits [count, classes],
  // and to labels [count] unless they are null, the first of several largest
  // logits; all are in device memory. One call at a time may run.
  virtual absl::Status Queue(const void* images, int64_t count, float* logits,
                             uint8_t* labels, Stream stream) = 0;
};

// The stages of the network's plan (compiled.h), on the current GPU, with the
// same logits. `image_size` is that of bytes. Errors are those of
// CompileForGpu.
absl::StatusOr<std::unique_ptr<DeviceNetwork>> CompileForDevice(
    const Network& network, const NetworkWeights& weights, int image_size,
    Pixels pixels, Workers& workers);

// The buffers of a call.
struct DeviceCall {
  void* images;
  int64_t count;
  float* logits;
  uint8_t* labels = nullptr;
  // Pinned host memory from which the images are copied first, and to which the
  // labels are copied; null: nothing is.
  const void* host_images = nullptr;
  int64_t host_bytes = 0;  // of all images
  uint8_t* host_labels = nullptr;
};

// Runs the call once, then records it as one CUDA graph, which the result
// queues in a stream. Network and buffers must outlive it.
absl::StatusOr<std::function<absl::Status(Stream)>> Record(
    DeviceNetwork& network, const DeviceCall& call);

}  // namespace convlab

#endif  // KERNELS_COMPILED_DEVICE_NETWORK_H_
