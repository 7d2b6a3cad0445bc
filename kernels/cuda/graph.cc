#include "kernels/cuda/graph.h"

#include <cuda_runtime_api.h>

#include "common/status/status.h"
#include "kernels/cuda/cuda_status.h"

namespace convlab::cuda {
void GraphDeleter::operator()(CUgraph_st* graph) const {
  cudaGraphDestroy(graph);
}

absl::StatusOr<RecordedGraph> RecordGraph(
    const DeviceStream& stream, const std::function<absl::Status()>& queue) {
  // Other threads may go on allocating.
  RETURN_IF_ERROR(CudaStatus(
      cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal),
      "cudaStreamBeginCapture"));
  const absl::Status queued = queue();
  cudaGraph_t graph = nullptr;
  // Ended in any case, or the stream could not be used any more.
  const absl::Status ended = CudaStatus(
      cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
  RecordedGraph recorded(graph);
  RETURN_IF_ERROR(queued);
  RETURN_IF_ERROR(ended);
  return recorded;
}

absl::StatusOr<Graph> Graph::Record(
    const DeviceStream& stream, const std::function<absl::Status()>& queue) {
  ASSIGN_OR_RETURN(const RecordedGraph recorded, RecordGraph(stream, queue));
  cudaGraphExec_t made = nullptr;
  RETURN_IF_ERROR(
      CudaStatus(cudaGraphInstantiateWithFlags(&made, recorded.get(), 0),
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
