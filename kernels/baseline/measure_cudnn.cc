#include <cudnn.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "kernels/baseline/convolution.h"
#include "kernels/baseline/cudnn_engines.h"
#include "kernels/baseline/cudnn_library.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/library.h"
#include "kernels/measure/gpu_tensors.h"
#include "kernels/measure/gpu_timer.h"
#include "kernels/measure/op_time.h"

namespace convlab {
namespace {

using cuda::ConvolutionEngines;
using cuda::DeviceBuffer;
using cuda::EnginePlan;
using cuda::Forward;

constexpr int64_t kWorkspaceLimit = int64_t{4} << 30;

// Every plan is timed a few times. Plans within this factor of the best are
// then measured by the rule.
constexpr double kNearBest = 1.25;
// A plan whose first run is slower than the best by this factor is not timed
// again. The host's clock decides, less the time that loading a kernel may
// take.
constexpr double kHopeless = 10;
constexpr int64_t kLoadingNs = 200000000;

// A plan that is prepared to run.
class Plan {
 public:
  virtual ~Plan() = default;
  virtual int64_t workspace_bytes() const = 0;
  // Sets the tensors of the runs that follow, and a workspace of
  // workspace_bytes().
  virtual absl::Status Bind(const GpuTensors& tensors,
                            const DeviceBuffer& workspace) = 0;
  virtual absl::Status Run() = 0;
};

// A plan that is not yet prepared.
struct Candidate {
  std::string algorithm;
  std::function<absl::StatusOr<std::unique_ptr<Plan>>()> prepare;
};

// An algorithm of the older interface.
class AlgorithmPlan : public Plan {
 public:
  static absl::StatusOr<std::unique_ptr<Plan>> Create(
      std::shared_ptr<const Forward> forward,
      cudnnConvolutionFwdAlgo_t algorithm) {
    ASSIGN_OR_RETURN(const int64_t bytes,
                     cuda::WorkspaceBytes(*forward, algorithm));
    return std::unique_ptr<Plan>(
        new AlgorithmPlan(std::move(forward), algorithm, bytes));
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Bind(const GpuTensors& tensors,
                    const DeviceBuffer& workspace) override {
    tensors_ = &tensors;
    workspace_ = &workspace;
    return absl::OkStatus();
  }

  absl::Status Run() override {
    return cuda::RunForward(*forward_, algorithm_, tensors_->x(), tensors_->k(),
                            tensors_->y(), *workspace_);
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
  const GpuTensors* tensors_ = nullptr;
  const DeviceBuffer* workspace_ = nullptr;
};

// An engine of the graph interface.
class GraphPlan : public Plan {
 public:
  explicit GraphPlan(EnginePlan plan) : plan_(std::move(plan)) {}

  int64_t workspace_bytes() const override { return plan_.workspace_bytes(); }

  absl::Status Bind(const GpuTensors& tensors,
                    const DeviceBuffer& workspace) override {
    return plan_.Bind(tensors.x(), tensors.k(), tensors.y(), workspace.data());
  }

  absl::Status Run() override { return plan_.Run(); }

 private:
  EnginePlan plan_;
};

// cuDNN's description of the tensors and the arithmetic of a class.
struct Types {
  ElementType element;
  cudnnDataType_t data;
  cudnnMathType_t math;  // of the older interface
  bool tensor_cores;     // of engines
};

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

struct CandidateList {
  std::vector<Candidate> candidates;
  std::vector<CudnnPlan> rejected;
};

// Returns all plans of one layout, whether they are acceptable or not.
// `engines` must outlive them.
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
  auto described =
      cuda::DescribeForward(problem, format, types.data, types.math);
  if (described.ok()) {
    const auto forward = std::make_shared<const Forward>(*std::move(described));
    for (int i = 0; i < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++i) {
      const auto algorithm = static_cast<cudnnConvolutionFwdAlgo_t>(i);
      list.candidates.push_back({cuda::Name(algorithm), [forward, algorithm] {
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
  for (const cuda::EngineConfig& config : engines->configs()) {
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

class Search {
 public:
  Search(AccuracyClass accuracy, const StoppingRule& rule, OpTimer op_timer,
         GpuTimer timer)
      : accuracy_(accuracy),
        rule_(rule),
        op_timer_(std::move(op_timer)),
        timer_(std::move(timer)) {}

  absl::Status MeasureLayout(const Problem& problem, cudnnTensorFormat_t format,
                             Workers& workers) {
    const bool nchw = format == CUDNN_TENSOR_NCHW;
    const Types types = TypesOf(accuracy_);
    ASSIGN_OR_RETURN(const GpuTensors tensors,
                     GpuTensors::Create(problem, workers,
                                        nchw ? Layout::kNchw : Layout::kNhwc,
                                        types.element));
    absl::StatusOr<ConvolutionEngines> engines;
    const CandidateList list = ListCandidates(problem, format, types, engines);
    const size_t first = plans_.size();
    std::vector<std::unique_ptr<Plan>> ready(list.candidates.size());
    for (size_t i = 0; i < ready.size(); ++i) {
      CudnnPlan plan;
      plan.algorithm = list.candidates[i].algorithm;
      plan.tensor_bytes = tensors.bytes();
      if (absl::Status status =
              Screen(list.candidates[i], tensors, plan, ready[i]);
          !status.ok()) {
        plan.rejected = OneLine(status.message());
        // A failed launch would make all later ones fail; that is an error, not
        // a rejection.
        RETURN_IF_ERROR(cuda::Synchronize());
      }
      plans_.push_back(std::move(plan));
    }
    for (size_t i = 0; i < ready.size(); ++i) {
      CudnnPlan& plan = plans_[first + i];
      if (!plan.rejected.empty() || ready[i] == nullptr ||
          plan.median_ns > kNearBest * best_ns_) {
        continue;
      }
      RETURN_IF_ERROR(
          Annotate(Measure(*ready[i], tensors, plan), plan.algorithm));
    }
    plans_.insert(plans_.end(), list.rejected.begin(), list.rejected.end());
    for (size_t i = first; i < plans_.size(); ++i) {
      plans_[i].layout = nchw ? "NCHW" : "NHWC";
    }
    return tensors.CheckInputs();
  }

  std::vector<CudnnPlan> Take() { return std::move(plans_); }

 private:
  // Prepares the plan, verifies it and, if it is not far too slow, times it a
  // few times.
  absl::Status Screen(const Candidate& candidate, const GpuTensors& tensors,
                      CudnnPlan& plan, std::unique_ptr<Plan>& ready) {
    ASSIGN_OR_RETURN(ready, candidate.prepare());
    plan.workspace_bytes = ready->workspace_bytes();
    if (plan.workspace_bytes > kWorkspaceLimit) {
      return absl::UnimplementedError(absl::StrCat(
          "needs a workspace of ", plan.workspace_bytes, " bytes"));
    }
    ASSIGN_OR_RETURN(const DeviceBuffer workspace,
                     DeviceBuffer::Allocate(plan.workspace_bytes));
    RETURN_IF_ERROR(ready->Bind(tensors, workspace));
    int64_t host_ns = 0;
    ASSIGN_OR_RETURN(plan.relative_error, tensors.Verify([&]() -> absl::Status {
      ASSIGN_OR_RETURN(const OpTime time,
                       op_timer_.Time([&] { return ready->Run(); }));
      host_ns = time.op_ns;
      return absl::OkStatus();
    }));
    RETURN_IF_ERROR(CheckError(plan.relative_error, accuracy_));
    if (best_ns_ > 0 && host_ns - kLoadingNs > kHopeless * best_ns_) {
      plan.samples_ns = {host_ns};
      plan.median_ns = host_ns;
      ready.reset();
      return absl::OkStatus();
    }
    StoppingRule few = rule_;
    few.min_samples = few.max_samples = StoppingRule::kFewestSamples;
    return Time(*ready, few, plan);
  }

  absl::Status Measure(Plan& ready, const GpuTensors& tensors,
                       CudnnPlan& plan) {
    ASSIGN_OR_RETURN(const DeviceBuffer workspace,
                     DeviceBuffer::Allocate(plan.workspace_bytes));
    RETURN_IF_ERROR(ready.Bind(tensors, workspace));
    return Time(ready, rule_, plan);
  }

  absl::Status Time(Plan& ready, const StoppingRule& rule, CudnnPlan& plan) {
    ASSIGN_OR_RETURN(GpuTimes times,
                     timer_.Time([&] { return ready.Run(); }, rule));
    plan.samples_ns = std::move(times.samples_ns);
    plan.sm_clock_mhz = times.sm_clock_mhz;
    plan.median_ns = Median(plan.samples_ns);
    if (best_ns_ == 0 || plan.median_ns < best_ns_) best_ns_ = plan.median_ns;
    return absl::OkStatus();
  }

  const AccuracyClass accuracy_;
  const StoppingRule rule_;
  OpTimer op_timer_;
  GpuTimer timer_;
  double best_ns_ = 0;  // the smallest median so far; 0 for none
  std::vector<CudnnPlan> plans_;
};

// Accepted plans come before rejected ones, and fully measured plans before
// those with a few samples, which may be lucky; then the fastest first.
std::tuple<bool, bool, double> Order(const CudnnPlan& plan) {
  return {!plan.rejected.empty(),
          plan.samples_ns.size() <= StoppingRule::kFewestSamples,
          plan.median_ns};
}

}  // namespace

absl::StatusOr<CudnnMeasurement> MeasureCudnn(const Problem& problem,
                                              AccuracyClass accuracy,
                                              Workers& workers,
                                              const StoppingRule& rule) {
  RETURN_IF_ERROR(CheckProblem(problem));
  if (accuracy == AccuracyClass::kBf16) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cuDNN is measured in class fp32, tf32 or fp16, not ", Name(accuracy)));
  }
  RETURN_IF_ERROR(cuda::OpenCudnn().status());
  CudnnMeasurement measurement;
  for (const cuda::Library* library : cuda::OpenedLibraries()) {
    if (library->name == "cuDNN") {
      measurement.version = cuda::ToString(library->version);
    }
  }
  ASSIGN_OR_RETURN(OpTimer op_timer, OpTimer::Create());
  ASSIGN_OR_RETURN(GpuTimer timer, GpuTimer::Create());
  Search search(accuracy, rule, std::move(op_timer), std::move(timer));
  for (const cudnnTensorFormat_t format :
       {CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC}) {
    RETURN_IF_ERROR(search.MeasureLayout(problem, format, workers));
  }
  measurement.plans = search.Take();
  std::stable_sort(measurement.plans.begin(), measurement.plans.end(),
                   [](const CudnnPlan& a, const CudnnPlan& b) {
                     return Order(a) < Order(b);
                   });
  return measurement;
}

}  // namespace convlab
