// Taking turns with constant memory. A __constant__ array is one for all
// convolutions of its kernel on a device, but these may run at the same time in
// different streams (kernels/convolution/convolution.h): a copy to the array
// must wait until the kernels that read it in another stream have ended.
//
//   static ConstantMemoryTurns turns;  // beside the __constant__ array
//   ...
//   ConstantMemoryTurn turn(turns, stream);
//   RETURN_IF_FAILED(turn.Begin());
//   ... cudaMemcpyToSymbolAsync(..., stream); Kernel<<<..., stream>>>(...);
//   RETURN_IF_FAILED(turn.End());
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_CONSTANT_MEMORY_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_CONSTANT_MEMORY_H_

#include <mutex>

#include "kernels/cuda/error.h"

namespace convlab::cuda {

// Who used the array last, for each device.
class ConstantMemoryTurns {
 public:
  static constexpr int kMaxDevices = 64;

 private:
  friend class ConstantMemoryTurn;

  // Events live as long as the process: when static objects are destroyed the
  // driver may be gone.
  struct Last {
    std::mutex mutex;
    cudaEvent_t end = nullptr;
    unsigned long long stream_id = 0;
  };
  Last last_[kMaxDevices];
};

// One user's turn in a stream of the current device. Other threads wait from
// Begin until the object is destroyed; the GPU's work waits only where the last
// user's stream was another one.
class ConstantMemoryTurn {
 public:
  ConstantMemoryTurn(ConstantMemoryTurns& turns, cudaStream_t stream)
      : turns_(turns), stream_(stream) {}

  Error Begin() {
    int device = 0;
    RETURN_IF_CUDA_ERROR(cudaGetDevice(&device));
    if (device >= ConstantMemoryTurns::kMaxDevices) {
      return {"constant memory", "more than 64 devices are not supported"};
    }
    last_ = &turns_.last_[device];
    lock_ = std::unique_lock<std::mutex>(last_->mutex);
    RETURN_IF_CUDA_ERROR(cudaStreamGetId(stream_, &stream_id_));
    if (last_->end == nullptr) {
      RETURN_IF_CUDA_ERROR(
          cudaEventCreateWithFlags(&last_->end, cudaEventDisableTiming));
    } else if (last_->stream_id != stream_id_) {
      RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(stream_, last_->end));
    }
    return {};
  }

  Error End() {
    RETURN_IF_CUDA_ERROR(cudaEventRecord(last_->end, stream_));
    last_->stream_id = stream_id_;
    return {};
  }

 private:
  ConstantMemoryTurns& turns_;
  const cudaStream_t stream_;
  ConstantMemoryTurns::Last* last_ = nullptr;
  std::unique_lock<std::mutex> lock_;
  unsigned long long stream_id_ = 0;
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_CONSTANT_MEMORY_H_
