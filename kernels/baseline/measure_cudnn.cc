#include <cudnn.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "kernels/baseline/convolution.h"
#include "kernels/baseline/cudnn_engines.h"
#include "kernels/baseline/cudnn_library.h"
#include "kernels/baseline/cudnn_plans.h"
#include "kernels/convolution/checking/families.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/library.h"
#include "kernels/measure/gpu_tensors.h"
#include "kernels/measure/gpu_timer.h"
#include "kernels/measure/op_time.h"

namespace convlab {
namespace {

using cuda::Candidate;
using cuda::CandidateList;
using cuda::ConvolutionEngines;
using cuda::DeviceBuffer;
using cuda::ListCandidates;
using cuda::Plan;
using cuda::Types;
using cuda::TypesOf;

constexpr int64_t kWorkspaceLimit = int64_t{4} << 30;

// Every plan is timed a few times. Plans within this factor of the best are
// then measured by the rule.
constexpr double kNearBest = 1.25;
// A plan whose first run is slower than the best by this factor is not timed
// again. The host's clock decides, less the time that loading a kernel may
// take.
constexpr double kHopeless = 10;
constexpr int64_t kLoadingNs = 200000000;
// Plans that are tried together on the families of data.
constexpr size_t kLabelGroup = 4;

class Search {
 public:
  Search(AccuracyClass accuracy, const CudnnSearch& search, Workers& workers,
         OpTimer op_timer, GpuTimer timer)
      : accuracy_(accuracy),
        search_(search),
        workers_(workers),
        op_timer_(std::move(op_timer)),
        timer_(std::move(timer)) {}

  absl::Status MeasureLayout(const Problem& problem,
                             cudnnTensorFormat_t format) {
    const bool nchw = format == CUDNN_TENSOR_NCHW;
    const Layout layout = nchw ? Layout::kNchw : Layout::kNhwc;
    const Types types = TypesOf(accuracy_);
    ASSIGN_OR_RETURN(const GpuTensors tensors,
                     GpuTensors::Create(problem, workers_, layout,
                                        types.element, search_.data));
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
    if (accuracy_ == AccuracyClass::kFp32 && search_.label) {
      RETURN_IF_ERROR(LabelPlans(problem, layout, tensors, first, ready));
    }
    plans_.insert(plans_.end(), list.rejected.begin(), list.rejected.end());
    for (size_t i = first; i < plans_.size(); ++i) {
      plans_[i].layout = nchw ? "NCHW" : "NHWC";
    }
    return tensors.CheckUse();
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
    ASSIGN_OR_RETURN(plan.error, tensors.Verify([&]() -> absl::Status {
      ASSIGN_OR_RETURN(const OpTime time,
                       op_timer_.Time([&] { return ready->Run(); }));
      host_ns = time.op_ns;
      return absl::OkStatus();
    }));
    if (search_.ordinary) {
      RETURN_IF_ERROR(CheckError(plan.error.relative, accuracy_));
    }
    if (accuracy_ != AccuracyClass::kFp32) plan.accuracy = accuracy_;
    if (best_ns_ > 0 && host_ns - kLoadingNs > kHopeless * best_ns_) {
      plan.samples_ns = {host_ns};
      plan.median_ns = host_ns;
      ready.reset();
      return absl::OkStatus();
    }
    StoppingRule few = search_.rule;
    few.min_samples = few.max_samples = StoppingRule::kFewestSamples;
    return Time(*ready, few, plan);
  }

  absl::Status Measure(Plan& ready, const GpuTensors& tensors,
                       CudnnPlan& plan) {
    ASSIGN_OR_RETURN(const DeviceBuffer workspace,
                     DeviceBuffer::Allocate(plan.workspace_bytes));
    RETURN_IF_ERROR(ready.Bind(tensors, workspace));
    return Time(ready, search_.rule, plan);
  }

  // Finds the classes of the layout's plans, which begin at `first`: the
  // fastest first, until one keeps the contract or all are slower than one that
  // does. That one is measured by the rule.
  absl::Status LabelPlans(const Problem& problem, Layout layout,
                          const GpuTensors& tensors, size_t first,
                          const std::vector<std::unique_ptr<Plan>>& ready) {
    std::vector<size_t> order;
    for (size_t i = 0; i < ready.size(); ++i) {
      if (plans_[first + i].rejected.empty() && ready[i] != nullptr) {
        order.push_back(i);
      }
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return plans_[first + a].median_ns < plans_[first + b].median_ns;
    });
    // In groups, whose plans share the data of each family.
    const size_t group =
        search_.label_all ? std::max<size_t>(1, order.size()) : kLabelGroup;
    for (size_t begin = 0; begin < order.size(); begin += group) {
      std::vector<Labelled> plans;
      for (size_t i = begin; i < std::min(begin + group, order.size()); ++i) {
        plans.push_back({&plans_[first + order[i]], ready[order[i]].get()});
      }
      if (!search_.label_all && best_fp32_ns_ > 0 &&
          plans[0].plan->median_ns > best_fp32_ns_) {
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(Label(problem, layout, plans));
      for (const Labelled& one : plans) {
        if (one.plan->accuracy != AccuracyClass::kFp32) continue;
        if (one.plan->samples_ns.size() <= StoppingRule::kFewestSamples) {
          RETURN_IF_ERROR(Annotate(Measure(*one.ready, tensors, *one.plan),
                                   one.plan->algorithm));
        }
        if (best_fp32_ns_ == 0 || one.plan->median_ns < best_fp32_ns_) {
          best_fp32_ns_ = one.plan->median_ns;
        }
        if (!search_.label_all) return absl::OkStatus();
      }
    }
    return absl::OkStatus();
  }

  struct Labelled {
    CudnnPlan* plan;
    Plan* ready;
  };

  // Tries the plans on all families of data. Unless all are to be labelled, a
  // plan is not tried further after the first family on which it breaks the
  // contract.
  absl::Status Label(const Problem& problem, Layout layout,
                     const std::vector<Labelled>& plans) {
    for (const DataFamily& family : DataFamilies()) {
      for (const Recipe& recipe : RecipesToCompare(family)) {
        RETURN_IF_ERROR(Label(problem, layout, family, recipe, plans));
      }
    }
    for (const Labelled& one : plans) {
      if (!one.plan->accuracy) one.plan->accuracy = AccuracyClass::kFp32;
    }
    return absl::OkStatus();
  }

  absl::Status Label(const Problem& problem, Layout layout,
                     const DataFamily& family, const Recipe& recipe,
                     const std::vector<Labelled>& plans) {
    ASSIGN_OR_RETURN(const GpuTensors tensors,
                     GpuTensors::Create(problem, workers_, layout,
                                        ElementType::kFloat, recipe));
    for (const Labelled& one : plans) {
      CudnnPlan& plan = *one.plan;
      if (plan.accuracy == AccuracyClass::kFp32Normwise && !search_.label_all) {
        continue;
      }
      ASSIGN_OR_RETURN(const DeviceBuffer workspace,
                       DeviceBuffer::Allocate(plan.workspace_bytes));
      RETURN_IF_ERROR(one.ready->Bind(tensors, workspace));
      const auto error = tensors.Verify([&] { return one.ready->Run(); });
      if (!error.ok()) return Annotate(error.status(), plan.algorithm);
      plan.families.push_back({family.name, error->worst});
      if (!error->worst.ok()) plan.accuracy = AccuracyClass::kFp32Normwise;
    }
    return absl::OkStatus();
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
  const CudnnSearch search_;
  Workers& workers_;
  OpTimer op_timer_;
  GpuTimer timer_;
  double best_ns_ = 0;       // the smallest median so far; 0 for none
  double best_fp32_ns_ = 0;  // of plans that keep the contract of class fp32
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

const CudnnPlan* CudnnMeasurement::best(AccuracyClass accuracy) const {
  for (const CudnnPlan& plan : plans) {
    if (!plan.rejected.empty()) continue;
    if (plan.accuracy.value_or(AccuracyClass::kFp32Normwise) <= accuracy) {
      return &plan;
    }
  }
  return nullptr;
}

absl::StatusOr<CudnnMeasurement> MeasureCudnn(const Problem& problem,
                                              AccuracyClass accuracy,
                                              Workers& workers,
                                              const CudnnSearch& options) {
  RETURN_IF_ERROR(CheckProblem(problem));
  if (accuracy == AccuracyClass::kFp32Normwise ||
      accuracy == AccuracyClass::kBf16) {
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
  Search search(accuracy, options, workers, std::move(op_timer),
                std::move(timer));
  for (const cudnnTensorFormat_t format :
       {CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC}) {
    if (format == CUDNN_TENSOR_NHWC && !options.nhwc) continue;
    RETURN_IF_ERROR(search.MeasureLayout(problem, format));
  }
  measurement.plans = search.Take();
  std::stable_sort(measurement.plans.begin(), measurement.plans.end(),
                   [](const CudnnPlan& a, const CudnnPlan& b) {
                     return Order(a) < Order(b);
                   });
  return measurement;
}

}  // namespace convlab
