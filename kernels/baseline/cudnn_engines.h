// The engines of cuDNN's graph interface for one convolution, by the C backend
// API. There are more of them than algorithms of the older interface
// (cudnn_library.h), and today's frameworks choose among them.
#ifndef KERNELS_BASELINE_CUDNN_ENGINES_H_
#define KERNELS_BASELINE_CUDNN_ENGINES_H_

#include <cudnn.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/baseline/cudnn_library.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// A descriptor of the backend API, of any kind.
using BackendDescriptor = Descriptor<cudnnBackendDescriptor_t>;

// An engine with its knobs as a heuristic proposed them.
struct EngineConfig {
  BackendDescriptor descriptor;
  std::string name;          // "engine 34 (k2=1 k5=0)", unique among a graph's
  bool tensor_core = false;  // by its numerical notes: products on tensor
                             // cores, or of inputs cut to fewer bits
};

// Returns the proposals of cuDNN's heuristics for the convolution of packed
// tensors of `type` in `format` with sums in float32: those of modes A and B
// and the fallbacks, each configuration once, in that order.
class ConvolutionEngines {
 public:
  // Fails if the convolution cannot be described to cuDNN; returns Unavailable
  // as OpenCudnn does.
  static absl::StatusOr<ConvolutionEngines> Find(const Problem& problem,
                                                 cudnnTensorFormat_t format,
                                                 cudnnDataType_t type);

  const std::vector<EngineConfig>& configs() const { return configs_; }

  // The modes or proposals that could not be queried, and why.
  struct Failure {
    std::string name;  // "heuristic mode B"
    absl::Status status;
  };
  const std::vector<Failure>& failures() const { return failures_; }

 private:
  ConvolutionEngines() = default;
  // The descriptors that a configuration refers to.
  std::vector<BackendDescriptor> graph_;
  std::vector<EngineConfig> configs_;
  std::vector<Failure> failures_;
};

// A configuration that is ready to run.
class EnginePlan {
 public:
  // Some engines are compiled here. Returns Unimplemented if the engine does
  // not support the convolution after all.
  static absl::StatusOr<EnginePlan> Create(const EngineConfig& config);

  int64_t workspace_bytes() const { return workspace_bytes_; }

  // Sets the tensors of the runs that follow.
  absl::Status Bind(const void* x, const void* k, void* y, void* workspace);
  // Queues the convolution in `stream`.
  absl::Status Run(cudaStream_t stream) const;

 private:
  explicit EnginePlan(BackendDescriptor plan) : plan_(std::move(plan)) {}
  BackendDescriptor plan_;
  BackendDescriptor tensors_{nullptr, nullptr};
  int64_t workspace_bytes_ = 0;
};

}  // namespace convlab::cuda

#endif  // KERNELS_BASELINE_CUDNN_ENGINES_H_
