#include "kernels/baseline/cudnn_plans.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/baseline/cudnn_library.h"

namespace convlab::cuda {
namespace {

// An algorithm of the older interface.
class AlgorithmPlan : public Plan {
 public:
  static absl::StatusOr<std::unique_ptr<Plan>> Create(
      std::shared_ptr<const Forward> forward,
      cudnnConvolutionFwdAlgo_t algorithm) {
    ASSIGN_OR_RETURN(const int64_t bytes, WorkspaceBytes(*forward, algorithm));
    return std::unique_ptr<Plan>(
        new AlgorithmPlan(std::move(forward), algorithm, bytes));
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Bind(const void* x, const void* k, void* y,
                    const DeviceBuffer& workspace) override {
    x_ = x;
    k_ = k;
    y_ = y;
    workspace_ = &workspace;
    return absl::OkStatus();
  }

  absl::Status Run(cudaStream_t stream) override {
    return RunForward(*forward_, algorithm_, x_, k_, y_, *workspace_, stream);
  }

 private:
  AlgorithmPlan(std::shared_ptr<const Forward> forward,
                cudnnConvolutionFwdAlgo_t algorithm, int64_t workspace_bytes)
      : forward_(std::move(forward)),
        algorithm_(algorithm),
        workspace_bytes_(workspace_bytes) {}

  const std::shared_ptr<const Forward> forward_;
  const cudnnConvolutionFwdAlgo_t algorithm_;
  const int64_t workspace_bytes_;
  const void *x_ = nullptr, *k_ = nullptr;
  void* y_ = nullptr;
  const DeviceBuffer* workspace_ = nullptr;
};

// An engine of the graph interface.
class GraphPlan : public Plan {
 public:
  explicit GraphPlan(EnginePlan plan) : plan_(std::move(plan)) {}

  int64_t workspace_bytes() const override { return plan_.workspace_bytes(); }

  absl::Status Bind(const void* x, const void* k, void* y,
                    const DeviceBuffer& workspace) override {
    return plan_.Bind(x, k, y, workspace.data());
  }

  absl::Status Run(cudaStream_t stream) override { return plan_.Run(stream); }

 private:
  EnginePlan plan_;
};

// A plan as a convolution.
class PlannedConvolution : public Convolution {
 public:
  static absl::StatusOr<std::unique_ptr<Convolution>> Create(
      const Problem& problem, absl::string_view algorithm) {
    auto made = std::make_unique<PlannedConvolution>();
    const CandidateList list =
        ListCandidates(problem, CUDNN_TENSOR_NCHW,
                       TypesOf(AccuracyClass::kFp32), made->engines_);
    for (const Candidate& candidate : list.candidates) {
      if (candidate.algorithm != algorithm) continue;
      ASSIGN_OR_RETURN(made->plan_, candidate.prepare());
      ASSIGN_OR_RETURN(made->workspace_,
                       DeviceBuffer::Allocate(made->plan_->workspace_bytes()));
      return made;
    }
    return absl::NotFoundError(absl::StrCat("cuDNN has no plan ", algorithm,
                                            " for ", ToString(problem)));
  }

  // The streams of its runs may end, and the handle is everybody's.
  ~PlannedConvolution() override {
    const absl::StatusOr<const Cudnn*> cudnn = OpenCudnn();
    if (cudnn.ok()) (*cudnn)->set_stream((*cudnn)->handle, nullptr);
  }

  absl::Status Run(const float* x, const float* k, float* y,
                   Stream stream) override {
    RETURN_IF_ERROR(plan_->Bind(x, k, y, workspace_));
    return plan_->Run(stream);
  }

 private:
  // What the plan refers to.
  absl::StatusOr<ConvolutionEngines> engines_;
  DeviceBuffer workspace_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace

Types TypesOf(AccuracyClass accuracy) {
  switch (accuracy) {
    case AccuracyClass::kFp16:
      return {ElementType::kHalf, CUDNN_DATA_HALF, CUDNN_TENSOR_OP_MATH, true};
    case AccuracyClass::kTf32:
      return {ElementType::kFloat, CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, true};
    default:
      return {ElementType::kFloat, CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, false};
  }
}

CandidateList ListCandidates(const Problem& problem, cudnnTensorFormat_t format,
                             const Types& types,
                             absl::StatusOr<ConvolutionEngines>& engines) {
  CandidateList list;
  const auto reject = [&](const std::string& name, const absl::Status& why) {
    CudnnPlan plan;
    plan.algorithm = name;
    plan.rejected = std::string(why.message());
    list.rejected.push_back(std::move(plan));
  };
  auto described = DescribeForward(problem, format, types.data, types.math);
  if (described.ok()) {
    const auto forward = std::make_shared<const Forward>(*std::move(described));
    for (int i = 0; i < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++i) {
      const auto algorithm = static_cast<cudnnConvolutionFwdAlgo_t>(i);
      list.candidates.push_back({Name(algorithm), [forward, algorithm] {
                                   return AlgorithmPlan::Create(forward,
                                                                algorithm);
                                 }});
    }
  } else {
    reject("the algorithms of the older interface", described.status());
  }
  engines = ConvolutionEngines::Find(problem, format, types.data);
  if (!engines.ok()) {
    reject("the engines of the graph interface", engines.status());
    return list;
  }
  for (const ConvolutionEngines::Failure& failure : engines->failures()) {
    reject(failure.name, failure.status);
  }
  for (const EngineConfig& config : engines->configs()) {
    if (config.tensor_core && !types.tensor_cores) {
      reject(config.name,
             absl::UnimplementedError(
                 "it reduces its inputs' precision, by its own notes"));
      continue;
    }
    list.candidates.push_back(
        {config.name, [&config]() -> absl::StatusOr<std::unique_ptr<Plan>> {
           ASSIGN_OR_RETURN(EnginePlan plan, EnginePlan::Create(config));
           return std::make_unique<GraphPlan>(std::move(plan));
         }});
  }
  return list;
}

}  // namespace convlab::cuda

namespace convlab {

absl::StatusOr<std::unique_ptr<Convolution>> CreateCudnnPlan(
    const Problem& problem, absl::string_view algorithm) {
  RETURN_IF_ERROR(CheckProblem(problem));
  RETURN_IF_ERROR(cuda::OpenCudnn().status());
  return cuda::PlannedConvolution::Create(problem, algorithm);
}

}  // namespace convlab
