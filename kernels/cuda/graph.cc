#include "kernels/cuda/graph.h"

#include <cuda_runtime_api.h>

#include "absl/cleanup/cleanup.h"
#include "common/status/status.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {
namespace {

absl::Status CudaStatus(cudaError_t code, const char* call) {
  return ToStatus(Check(code, call));
}

}  // namespace

absl::StatusOr<Graph> Graph::Record(
    const DeviceStream& stream, const std::function<absl::Status()>& queue) {
  // Other threads may go on allocating.
  RETURN_IF_ERROR(CudaStatus(
      cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal),
      "cudaStreamBeginCapture"));
  const absl::Status queued = queue();
  cudaGraph_t recorded = nullptr;
  // Ended in any case, or the stream could not be used any more.
  const absl::Status ended = CudaStatus(
      cudaStreamEndCapture(stream.get(), &recorded), "cudaStreamEndCapture");
  const absl::Cleanup destroy = [&] {
    if (recorded != nullptr) cudaGraphDestroy(recorded);
  };
  RETURN_IF_ERROR(queued);
  RETURN_IF_ERROR(ended);
  cudaGraphExec_t made = nullptr;
  RETURN_IF_ERROR(CudaStatus(cudaGraphInstantiateWithFlags(&made, recorded, 0),
                             "cudaGraphInstantiateWithFlags"));
  Graph graph;
  graph.graph_ = made;
  return graph;
}

Graph::~Graph() {
  if (graph_ != nullptr) {
    cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph_));
  }
}

absl::Status Graph::Launch(CUstream_st* stream) const {
  return CudaStatus(
      cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph_), stream),
      "cudaGraphLaunch");
}

}  // namespace convlab::cuda
