// A stream, for .cu files and host code inside kernels. Light, as error.h is.
#ifndef KERNELS_CUDA_STREAM_H_
#define KERNELS_CUDA_STREAM_H_

#include "kernels/cuda/error.h"

namespace convlab::cuda {

// Work in it waits for what is in the default stream already, and later work
// in the default stream waits for it; work of two streams may overlap.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  // Once, before get().
  Error Create() {
    // Without cudaStreamNonBlocking, which would give up the default stream's
    // order.
    RETURN_IF_CUDA_ERROR(cudaStreamCreate(&stream_));
    return {};
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_STREAM_H_
