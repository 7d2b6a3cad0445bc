// The engines of cuDNN's graph interface for one convolution, by the C backend
// API. They are more than the algorithms of the older interface
// (cudnn_library.h), and what frameworks choose from today.
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

// A descriptor of the backend API, whatever it describes.
using BackendDescriptor = Descriptor<cudnnBackendDescriptor_t>;

// An engine with its knobs set, as a heuristic proposed it.
struct EngineConfig {
  BackendDescriptor descriptor;
  std::string name;          // "engine 34 (k2=1 k5=0)", unique among a graph's
  bool tensor_core = false;  // by its numerical notes: products on tensor
                             // cores, or of inputs cut to fewer bits
};

// What cuDNN's heuristics propose for the convolution of packed tensors of
// `type` in `format`, sums in float32: modes A and B and the fallbacks, each
// configuration once, in that order.
class ConvolutionEngines {
 public:
  // Fails if the convolution cannot be described to cuDNN; Unavailable as
  // OpenCudnn.
  static absl::StatusOr<ConvolutionEngines> Find(const Problem& problem,
                                                 cudnnTensorFormat_t format,
                                                 cudnnDataType_t type);

  const std::vector<EngineConfig>& configs() const { return configs_; }

  // What could not be asked, a mode or one of its proposals, and why.
  struct Failure {
    std::string name;  // "heuristic mode B"
    absl::Status status;
  };
  const std::vector<Failure>& failures() const { return failures_; }

 private:
  ConvolutionEngines() = default;
  // Those that a configuration refers to.
  std::vector<BackendDescriptor> graph_;
  std::vector<EngineConfig> configs_;
  std::vector<Failure> failures_;
};

// A configuration made ready to run.
class EnginePlan {
 public:
  // Some engines are compiled here. Unimplemented where the engine does not do
  // the convolution after all.
  static absl::StatusOr<EnginePlan> Create(const EngineConfig& config);

  int64_t workspace_bytes() const { return workspace_bytes_; }

  // The tensors of the runs that follow.
  absl::Status Bind(const void* x, const void* k, void* y, void* workspace);
  // Starts the convolution in the default stream.
  absl::Status Run() const;

 private:
  explicit EnginePlan(BackendDescriptor plan) : plan_(std::move(plan)) {}
  BackendDescriptor plan_;
  BackendDescriptor tensors_{nullptr, nullptr};
  int64_t workspace_bytes_ = 0;
};

}  // namespace convlab::cuda

#endif  // KERNELS_BASELINE_CUDNN_ENGINES_H_
