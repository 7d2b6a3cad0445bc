// Work on the GPU that is recorded once and then started as a whole, which
// takes the host about as long as to start one kernel.
#ifndef KERNELS_CUDA_GRAPH_H_
#define KERNELS_CUDA_GRAPH_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"

struct CUgraph_st;  // cudaGraph_t is a pointer to one

namespace convlab::cuda {

struct GraphDeleter {
  void operator()(CUgraph_st* graph) const;
};
using RecordedGraph = std::unique_ptr<CUgraph_st, GraphDeleter>;

// Records what `queue` queues in the stream, which is not run. `queue` calls
// nothing that waits or allocates.
absl::StatusOr<RecordedGraph> RecordGraph(
    const DeviceStream& stream, const std::function<absl::Status()>& queue);

class Graph {
 public:
  // Records as RecordGraph does.
  static absl::StatusOr<Graph> Record(
      const DeviceStream& stream, const std::function<absl::Status()>& queue);

  Graph(Graph&& other) noexcept { std::swap(graph_, other.graph_); }
  Graph& operator=(Graph&& other) noexcept {
    std::swap(graph_, other.graph_);
    return *this;
  }
  ~Graph();

  // Queues the recorded work; null is the default stream.
  absl::Status Launch(CUstream_st* stream) const;
  absl::Status Launch(const DeviceStream& stream) const {
    return Launch(stream.get());
  }

 private:
  Graph() = default;
  void* graph_ = nullptr;  // cudaGraphExec_t
};

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_GRAPH_H_
