// cuDNN's plans for one convolution, of the older interface and of the graph
// interface behind one.
#ifndef KERNELS_BASELINE_CUDNN_PLANS_H_
#define KERNELS_BASELINE_CUDNN_PLANS_H_

#include <cudnn.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/baseline/convolution.h"
#include "kernels/baseline/cudnn_engines.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/gpu_tensors.h"

namespace convlab::cuda {

// A plan that is prepared to run.
class Plan {
 public:
  virtual ~Plan() = default;
  virtual int64_t workspace_bytes() const = 0;
  // Sets the tensors of the runs that follow, and a workspace of
  // workspace_bytes().
  virtual absl::Status Bind(const void* x, const void* k, void* y,
                            const DeviceBuffer& workspace) = 0;
  absl::Status Bind(const GpuTensors& tensors, const DeviceBuffer& workspace) {
    return Bind(tensors.x(), tensors.k(), tensors.y(), workspace);
  }
  virtual absl::Status Run(cudaStream_t stream = nullptr) = 0;
};

// A plan that is not yet prepared.
struct Candidate {
  std::string algorithm;
  std::function<absl::StatusOr<std::unique_ptr<Plan>>()> prepare;
};

// cuDNN's description of the tensors and the arithmetic of a class.
struct Types {
  ElementType element;
  cudnnDataType_t data;
  cudnnMathType_t math;  // of the older interface
  bool tensor_cores;     // of engines
};

Types TypesOf(AccuracyClass accuracy);

struct CandidateList {
  std::vector<Candidate> candidates;
  std::vector<CudnnPlan> rejected;
};

// Returns all plans of one layout, whether they are acceptable or not.
// `engines` must outlive them.
CandidateList ListCandidates(const Problem& problem, cudnnTensorFormat_t format,
                             const Types& types,
                             absl::StatusOr<ConvolutionEngines>& engines);

}  // namespace convlab::cuda

#endif  // KERNELS_BASELINE_CUDNN_PLANS_H_
