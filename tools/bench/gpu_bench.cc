#include "tools/bench/gpu_bench.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/accuracy/accuracy.h"
#include "common/hardware/floor.h"
#include "common/hash/mix.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "kernels/baseline/convolution.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/gpu_ceilings.h"
#include "kernels/measure/gpu_facts.h"
#include "kernels/measure/gpu_tensors.h"
#include "kernels/measure/gpu_timer.h"
#include "kernels/measure/hard_limits.h"
#include "kernels/measure/stream_order.h"
#include "tools/bench/accuracy_bench.h"
#include "tools/bench/kernel_bench.h"

namespace convlab {
namespace {

class GpuBench {
 public:
  GpuBench(const BenchOptions& options, Workers& workers, BenchRecord& record,
           Report& report, GpuTimer timer, HardLimits limits)
      : options_(options),
        workers_(workers),
        record_(record),
        report_(report),
        timer_(std::move(timer)),
        limits_(std::move(limits)) {}

  absl::Status MeasureLayer(const NamedLayer& layer) {
    std::set<AccuracyClass> classes;
    ASSIGN_OR_RETURN(const std::vector<const Variant*> variants,
                     VariantsFor(options_, layer.problem));
    if (!variants.empty()) {
      ASSIGN_OR_RETURN(
          GpuTensors tensors,
          GpuTensors::Create(layer.problem, workers_, Layout::kNchw,
                             ElementType::kFloat, options_.recipe()));
      for (const Variant* variant : variants) {
        classes.insert(variant->accuracy);
        report_.Progress(absl::StrCat(layer.name, ": ", variant->name));
        const auto measured = MeasureVariant(layer, *variant, tensors);
        if (measured.ok()) {
          report_.Add(layer, *measured, record_.ceilings);
          continue;
        }
        // A variant may decline the problem, or need more memory than there is;
        // any other error is a failure.
        const bool memory = absl::IsResourceExhausted(measured.status());
        report_.Omit(layer, "convlab", variant->name, variant->accuracy,
                     measured.status().message(),
                     !memory && !absl::IsUnimplemented(measured.status()));
        if (memory) TellOutOfMemory(layer, variant->name, measured.status());
        // A failed launch would make all later ones fail.
        RETURN_IF_ERROR(cuda::Synchronize());
      }
    } else {
      classes.insert(options_.classes.begin(), options_.classes.end());
    }
    RETURN_IF_ERROR(MeasureKernels(options_, layer, workers_, record_.ceilings,
                                   limits_, report_));
    if (options_.peers) {
      // One search gives the rows of both classes of float32.
      if (classes.count(AccuracyClass::kFp32Normwise) > 0) {
        classes.insert(AccuracyClass::kFp32);
      }
      for (const AccuracyClass accuracy : classes) {
        if (accuracy == AccuracyClass::kFp32Normwise) continue;
        RETURN_IF_ERROR(MeasurePeer(layer, accuracy));
      }
    }
    report_.PrintLayer();
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Measurement> MeasureVariant(const NamedLayer& layer,
                                             const Variant& variant,
                                             GpuTensors& tensors) {
    Resources resources;
    resources.workers = &workers_;
    ASSIGN_OR_RETURN(const auto convolution,
                     variant.Create(layer.problem, resources));
    const auto run = [&] {
      return convolution->Run(static_cast<const float*>(tensors.x()),
                              static_cast<const float*>(tensors.k()),
                              static_cast<float*>(tensors.y()),
                              /*stream=*/nullptr);
    };
    Measurement measurement;
    measurement.provider = "convlab";
    measurement.variant = variant.name;
    measurement.accuracy = variant.accuracy;
    measurement.bytes = tensors.bytes();
    // What an earlier one has done to them is not this one's fault.
    RETURN_IF_ERROR(tensors.Restore());
    ASSIGN_OR_RETURN(const MeasuredError error, tensors.Verify(run));
    RETURN_IF_ERROR(tensors.CheckUse());
    RETURN_IF_ERROR(
        CheckMeasured(error, variant.accuracy, options_.ordinary_data()));
    measurement.error = error.relative;
    measurement.worst = error.worst;
    RETURN_IF_ERROR(CheckStreamOrder(run, tensors.y(), tensors.y_bytes()));
    ASSIGN_OR_RETURN(const GpuTimes times, TimeChecked(run, variant, tensors));
    measurement.samples_ns = times.samples_ns;
    measurement.sm_clock_mhz = times.sm_clock_mhz;
    // A transform multiplies other and fewer numbers.
    const int products =
        variant.exact_on_integers ? TensorProducts(variant.accuracy) : 1;
    RETURN_IF_ERROR(CheckLimits(layer.problem, products, measurement.bytes,
                                Quantile(measurement.samples_ns, 0), limits_));
    return measurement;
  }

  // Times the variant on new inputs in each sample, and checks what it
  // computed: outputs of each sample, and all of one that is drawn.
  absl::StatusOr<GpuTimes> TimeChecked(const GpuTimer::Run& run,
                                       const Variant& variant,
                                       GpuTensors& tensors) {
    const bool ordinary = options_.ordinary_data();
    const auto check_whole = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(const MeasuredError whole, tensors.WholeError());
      return Annotate(CheckMeasured(whole, variant.accuracy, ordinary),
                      "the whole output");
    };
    // Any of those that the rule is sure to ask for; if time ends them before,
    // it is the last.
    const uint64_t drawn = 1 + NextRandom() % options_.rule.min_samples;
    uint64_t sample = 0;
    GpuTimer::Around around;
    around.before = [&] { return tensors.Renew(ordinary, NextRandom()); };
    around.after = [&]() -> absl::Status {
      ++sample;
      const auto check = [&]() -> absl::Status {
        RETURN_IF_ERROR(tensors.CheckUse());
        ASSIGN_OR_RETURN(const MeasuredError error,
                         tensors.DrawnError(NextRandom()));
        RETURN_IF_ERROR(CheckDrawn(error, variant.accuracy, ordinary));
        return sample == drawn ? check_whole() : absl::OkStatus();
      };
      return Annotate(check(), absl::StrCat("sample ", sample));
    };
    ASSIGN_OR_RETURN(GpuTimes times, timer_.Time(run, options_.rule, around));
    if (sample < drawn) RETURN_IF_ERROR(check_whole());
    return times;
  }

  // Not a failure, but no row of the table where somebody expects one.
  void TellOutOfMemory(const NamedLayer& layer, absl::string_view name,
                       const absl::Status& status) {
    report_.Tell(absl::StrCat("not measured: ", layer.name, ", ", name, ": ",
                              OneLine(status.message())));
  }

  uint64_t NextRandom() {
    return Mix(static_cast<uint64_t>(record_.check_seed), random_++);
  }

  absl::Status MeasurePeer(const NamedLayer& layer, AccuracyClass accuracy) {
    report_.Progress(absl::StrCat(layer.name, ": cuDNN, ", Name(accuracy)));
    CudnnSearch search;
    search.rule = options_.rule;
    search.data = options_.recipe();
    search.ordinary = options_.ordinary_data();
    const auto measured =
        MeasureCudnn(layer.problem, accuracy, workers_, search);
    if (!measured.ok()) {
      const bool memory = absl::IsResourceExhausted(measured.status());
      const bool missing = memory || absl::IsUnavailable(measured.status());
      report_.Omit(layer, "cudnn", "", accuracy, measured.status().message(),
                   !missing);
      if (memory) TellOutOfMemory(layer, "cudnn", measured.status());
      return missing ? absl::OkStatus() : cuda::Synchronize();
    }
    record_.peer = absl::StrCat("cuDNN ", measured->version);
    if (options_.verbose) TellPlans(layer, *measured);
    AddLabels(layer, *measured);
    const CudnnPlan* const best = measured->best(accuracy);
    AddPeer(layer, accuracy, best);
    if (accuracy != AccuracyClass::kFp32) return absl::OkStatus();
    // The fastest of all, if it does not keep the contract.
    const CudnnPlan* const any = measured->best(AccuracyClass::kFp32Normwise);
    if (any != best) AddPeer(layer, AccuracyClass::kFp32Normwise, any);
    return absl::OkStatus();
  }

  // The worst family of each plan that was tried on them.
  void AddLabels(const NamedLayer& layer, const CudnnMeasurement& measured) {
    for (const CudnnPlan& plan : measured.plans) {
      if (plan.families.empty()) continue;
      const auto worst =
          std::max_element(plan.families.begin(), plan.families.end(),
                           [](const FamilyError& a, const FamilyError& b) {
                             return a.worst.factor / a.worst.allowed <
                                    b.worst.factor / b.worst.allowed;
                           });
      AccuracyRow row = {"cudnn",
                         absl::StrCat(plan.layout, " ", plan.algorithm),
                         std::string(Name(*plan.accuracy)),
                         {}};
      AddWorst(worst->family, layer.name, worst->worst, row);
      record_.accuracy.push_back(std::move(row));
    }
  }

  // Adds the row of a plan, or the omission if there is none.
  void AddPeer(const NamedLayer& layer, AccuracyClass accuracy,
               const CudnnPlan* best) {
    if (best == nullptr) {
      report_.Omit(layer, "cudnn", "", accuracy, "it has no plan for the layer",
                   false);
      return;
    }
    Measurement measurement;
    measurement.provider = "cudnn";
    measurement.variant = absl::StrCat(best->layout, " ", best->algorithm);
    measurement.accuracy = accuracy;
    measurement.error = best->error.relative;
    measurement.worst = best->error.worst;
    measurement.samples_ns = best->samples_ns;
    measurement.sm_clock_mhz = best->sm_clock_mhz;
    measurement.bytes = best->tensor_bytes;
    if (absl::Status status =
            CheckLimits(layer.problem, /*products=*/1, measurement.bytes,
                        Quantile(measurement.samples_ns, 0), limits_);
        !status.ok()) {
      report_.Omit(layer, "cudnn", measurement.variant, accuracy,
                   status.message(), true);
      return;
    }
    report_.Add(layer, measurement, record_.ceilings);
  }

  void TellPlans(const NamedLayer& layer, const CudnnMeasurement& measured) {
    int rejected = 0;
    for (const CudnnPlan& plan : measured.plans) {
      rejected += plan.rejected.empty() ? 0 : 1;
      const std::string name = absl::StrCat(layer.name, " cuDNN ", plan.layout,
                                            " ", plan.algorithm, ": ");
      if (!plan.rejected.empty()) {
        report_.Tell(absl::StrCat(name, "rejected: ", plan.rejected));
        continue;
      }
      report_.Tell(absl::StrFormat(
          "%s%.4f ms, %d samples, error %.1e, %s, workspace %s", name,
          plan.median_ns * 1e-6, plan.samples_ns.size(), plan.error.relative,
          plan.accuracy ? Name(*plan.accuracy) : "of no class yet",
          FormatBytes(static_cast<double>(plan.workspace_bytes))));
    }
    report_.Tell(absl::StrCat(layer.name, " cuDNN: ", measured.plans.size(),
                              " plans, ", rejected, " of them rejected"));
  }

  const BenchOptions& options_;
  Workers& workers_;
  BenchRecord& record_;
  Report& report_;
  GpuTimer timer_;
  const HardLimits limits_;
  uint64_t random_ = 0;  // numbers drawn so far
};

// The value does not matter, since no kernel's work depends on it. All four
// bytes are equal; the float is 0.186.
absl::StatusOr<cuda::DeviceBuffer> Filled(int64_t floats) {
  constexpr uint8_t kValue = 0x3e;
  ASSIGN_OR_RETURN(auto buffer, cuda::DeviceBuffer::Allocate(4 * floats));
  RETURN_IF_ERROR(cuda::FillBytes(buffer.data(), kValue, buffer.bytes()));
  return buffer;
}

absl::Status RunOnce(const Variant& variant, const Problem& problem,
                     const Resources& resources) {
  ASSIGN_OR_RETURN(const auto convolution, variant.Create(problem, resources));
  ASSIGN_OR_RETURN(const auto x, Filled(problem.input_elements()));
  ASSIGN_OR_RETURN(const auto k, Filled(problem.kernel_elements()));
  ASSIGN_OR_RETURN(const auto y, Filled(problem.output_elements()));
  // The first run loads code and libraries.
  RETURN_IF_ERROR(
      convolution->Run(x.floats(), k.floats(), y.floats(), nullptr));
  RETURN_IF_ERROR(cuda::Synchronize());
  RETURN_IF_ERROR(cuda::StartProfiler());
  RETURN_IF_ERROR(
      convolution->Run(x.floats(), k.floats(), y.floats(), nullptr));
  RETURN_IF_ERROR(cuda::Synchronize());
  return cuda::StopProfiler();
}

}  // namespace

absl::Status RunOnGpuOnce(const BenchOptions& options, Workers& workers) {
  if (options.variants.empty() && !options.fastest) {
    return absl::InvalidArgumentError("--once is for variants, not a library");
  }
  Resources resources;
  resources.workers = &workers;
  bool ran = false;
  absl::Status declined;
  for (const NamedLayer& layer : options.layers) {
    ASSIGN_OR_RETURN(const std::vector<const Variant*> variants,
                     VariantsFor(options, layer.problem));
    for (const Variant* variant : variants) {
      const absl::Status supported =
          variant->supports(layer.problem, resources);
      if (supported.ok()) {
        RETURN_IF_ERROR(RunOnce(*variant, layer.problem, resources));
        ran = true;
        continue;
      }
      declined =
          Annotate(supported, absl::StrCat(layer.name, ": ", variant->name));
      absl::FPrintF(stderr, "bench: left out: %s\n",
                    OneLine(declined.message()));
    }
  }
  return ran ? absl::OkStatus() : declined;
}

absl::StatusOr<cuda::DeviceFacts> SetGpuFacts(BenchmarkRun& record) {
  ASSIGN_OR_RETURN(const cuda::DeviceFacts device, cuda::FindDevice());
  record.gpu = FactsOf(device);
  return device;
}

absl::Status BenchGpu(const BenchOptions& options, Workers& workers,
                      BenchRecord& record, Report& report) {
  ASSIGN_OR_RETURN(const cuda::DeviceFacts device, SetGpuFacts(record));
  HardLimits limits = LimitsOf(device);
  if (!limits.note.empty()) report.Tell(limits.note);
  report.Progress("ceilings");
  ASSIGN_OR_RETURN(record.ceilings, MeasureGpuCeilings());
  report.Tell(absl::StrCat(device.name, ", ", CeilingsLine(record.ceilings)));
  ASSIGN_OR_RETURN(GpuTimer timer, GpuTimer::Create());
  GpuBench bench(options, workers, record, report, std::move(timer),
                 std::move(limits));
  for (const NamedLayer& layer : options.layers) {
    report.BeginLayer(layer);
    RETURN_IF_ERROR(bench.MeasureLayer(layer));
  }
  return absl::OkStatus();
}

}  // namespace convlab
