// Streams and their order, for .cu files and host code inside kernels. Light,
// as error.h is.
#ifndef KERNELS_CUDA_STREAM_H_
#define KERNELS_CUDA_STREAM_H_

#include "kernels/cuda/error.h"

namespace convlab::cuda {

// A stream on the device that was current at Create. Work of two streams may
// overlap; it is ordered by events alone, not by the default stream.
class OwnedStream {
 public:
  OwnedStream() = default;
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  ~OwnedStream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  // Once, before get().
  Error Create() {
    RETURN_IF_CUDA_ERROR(
        cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    return {};
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// A point in a stream's work for which other streams wait.
class OrderEvent {
 public:
  OrderEvent() = default;
  OrderEvent(const OrderEvent&) = delete;
  OrderEvent& operator=(const OrderEvent&) = delete;
  ~OrderEvent() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }

  // Once, before Order.
  Error Create() {
    RETURN_IF_CUDA_ERROR(
        cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    return {};
  }
  // What is queued in `after` from now on waits for all that is queued in
  // `before` now.
  Error Order(cudaStream_t before, cudaStream_t after) {
    RETURN_IF_CUDA_ERROR(cudaEventRecord(event_, before));
    RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(after, event_));
    return {};
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_STREAM_H_
