#include "tools/bench/kernel_bench.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/network/network.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "kernels/judge/verdict.h"

namespace convlab {

absl::Status MeasureKernels(const BenchOptions& options,
                            const NamedLayer& layer, Workers& workers,
                            const Ceilings& ceilings, const HardLimits& limits,
                            Report& report) {
  const Problem& problem = layer.problem;
  for (const CompiledKernel& kernel : options.kernels) {
    const std::string& name = kernel.source.name;
    report.Progress(absl::StrCat(layer.name, ": ", name));
    if (problem.height != problem.width) {
      report.Omit(layer, kKernelProvider, name, AccuracyClass::kFp32,
                  "the judge takes square images", /*failed=*/false);
      continue;
    }
    // A network of this layer alone.
    Network network;
    network.name = layer.name;
    network.image_channels = static_cast<int>(problem.channels);
    network.image_size = static_cast<int>(problem.height);
    network.layers = {ConvolutionLayer{static_cast<int>(problem.filters),
                                       static_cast<int>(problem.kernel_size),
                                       /*bias=*/false}};
    JudgeOptions judge;
    judge.network = &network;
    judge.batch = problem.batch;
    judge.quick = true;
    judge.samples = options.rule.min_samples;
    judge.timed_seconds = options.rule.max_seconds;
    judge.process.gpu = options.backend == Backend::kCuda;
    judge.process.threads = options.threads;
    ASSIGN_OR_RETURN(const Verdict verdict, Judge(kernel, judge, workers));
    const bool right = IsRight(verdict);
    if (!right || !verdict.op_time_counts) {
      const std::string reason = right ? verdict.op_time_note
                                 : verdict.reason.empty()
                                     ? ""
                                     : verdict.reason.front();
      report.Omit(layer, kKernelProvider, name, verdict.accuracy,
                  absl::StrCat(right ? "its op time is no result"
                                     : Name(verdict.outcome),
                               ": ", reason),
                  /*failed=*/!right);
      continue;
    }
    const LayerTimes& times = verdict.layers.front();
    Measurement measurement;
    measurement.provider = kKernelProvider;
    measurement.variant = name;
    measurement.accuracy = verdict.accuracy;
    measurement.error = verdict.relative_error;
    measurement.samples_ns = judge.process.gpu ? times.kernel_ns : times.op_ns;
    measurement.bytes = problem.min_bytes();
    const absl::Status possible =
        CheckLimits(problem, /*products=*/1, measurement.bytes,
                    Median(measurement.samples_ns), limits);
    if (!possible.ok()) {
      report.Omit(layer, kKernelProvider, name, verdict.accuracy,
                  possible.message(), /*failed=*/true);
      continue;
    }
    report.Add(layer, measurement, ceilings);
  }
  return absl::OkStatus();
}

}  // namespace convlab
