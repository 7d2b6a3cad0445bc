#include "kernels/cuda/side_stream.h"

#include <cuda_runtime_api.h>

#include "common/status/status.h"
#include "kernels/cuda/cuda_status.h"

namespace convlab::cuda {
namespace {

// What `later` is given from now on waits for what `earlier` has been given.
absl::Status Order(CUstream_st* earlier, CUevent_st* event,
                   CUstream_st* later) {
  RETURN_IF_ERROR(
      CudaStatus(cudaEventRecord(event, earlier), "cudaEventRecord"));
  return CudaStatus(cudaStreamWaitEvent(later, event, /*flags=*/0),
                    "cudaStreamWaitEvent");
}

}  // namespace

absl::StatusOr<SideStream> SideStream::Create() {
  ASSIGN_OR_RETURN(DeviceStream stream, DeviceStream::Create());
  CUevent_st* event = nullptr;
  RETURN_IF_ERROR(
      CudaStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                 "cudaEventCreateWithFlags"));
  return SideStream(std::move(stream), Event(event));
}

void SideStream::Destroy::operator()(CUevent_st* event) const {
  cudaEventDestroy(event);
}

absl::Status SideStream::Fork(CUstream_st* stream) const {
  return Order(stream, event_.get(), stream_.get());
}

absl::Status SideStream::Join(CUstream_st* stream) const {
  return Order(stream_.get(), event_.get(), stream);
}

}  // namespace convlab::cuda
