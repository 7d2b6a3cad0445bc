// Work beside that of a stream.
#ifndef KERNELS_CUDA_SIDE_STREAM_H_
#define KERNELS_CUDA_SIDE_STREAM_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"

struct CUevent_st;  // cudaEvent_t is a pointer to one

namespace convlab::cuda {

// A stream that branches off another one and joins it again, so that the work
// of both may run at the same time. A recording of the other stream (graph.h)
// takes the branch with it.
class SideStream {
 public:
  static absl::StatusOr<SideStream> Create();

  CUstream_st* get() const { return stream_.get(); }

  // What is queued here from now on waits for what `stream` has been given.
  absl::Status Fork(CUstream_st* stream) const;
  // What `stream` is given from now on waits for what is queued here.
  absl::Status Join(CUstream_st* stream) const;

 private:
  struct Destroy {
    void operator()(CUevent_st* event) const;
  };
  using Event = std::unique_ptr<CUevent_st, Destroy>;

  SideStream(DeviceStream stream, Event event)
      : stream_(std::move(stream)), event_(std::move(event)) {}

  DeviceStream stream_;
  Event event_;
};

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_SIDE_STREAM_H_
