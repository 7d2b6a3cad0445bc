// Runs every compiled instance of direct_tiled on one layer, and prints what
// each takes: how the variant came to its choice.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/flags/flags.h"
#include "common/parallel/parallel.h"
#include "common/record/statistics.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "gflags/gflags.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/cuda/direct/instance_runner.h"
#include "kernels/convolution/cuda/direct/instances.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/gpu_tensors.h"
#include "kernels/measure/gpu_timer.h"
#include "tools/bench/layers.h"

DEFINE_int64(batch, 10000, "images of a layer that is given by its name");
DEFINE_int32(samples, 20, "measurements of each instance, at least");

namespace convlab {
namespace {

double MaxError(const Problem& problem) {
  return MaxRelativeError(AccuracyClass::kFp32,
                          problem.kernel_elements() / problem.filters);
}

struct Row {
  int instance = 0;
  cuda::DirectTiledUsage usage;
  double error = 0;
  std::vector<int64_t> times_ns;
};

// `chosen`: the instance that the variant runs.
void PrintTable(const Problem& problem, int chosen,
                const std::vector<Row>& rows) {
  absl::PrintF(
      "   K filters rows columns threads weights  | regs spill shared blocks "
      "occ padding |    error |       ms     IQR TFLOP/s\n");
  for (const Row& row : rows) {
    const cuda::DirectInstance& instance =
        cuda::kDirectTiledInstances[row.instance];
    const cuda::DirectTile& tile = instance.tile;
    const double median = Median(row.times_ns);
    const std::string k =
        instance.kernel_size == 0 ? "any" : absl::StrCat(instance.kernel_size);
    absl::PrintF(
        "%c%3s %7d %4d %7d %3d/%3d %-8s | %4d %5d %5.1fK %6d %2.0f%% %7.2f | "
        "%.2e | %8.4f %7.4f %7.2f\n",
        row.instance == chosen ? '*' : ' ', k, tile.filters, tile.rows,
        tile.columns, row.usage.threads, tile.threads,
        tile.constant_filters ? "constant" : "shared", row.usage.registers,
        row.usage.spill_bytes, row.usage.shared_bytes / 1024.0,
        row.usage.blocks, 100 * row.usage.occupancy, row.usage.padding,
        row.error, median / 1e6, InterquartileRange(row.times_ns) / 1e6,
        problem.flops() / median / 1e3);
  }
}

absl::Status Sweep(const Problem& problem) {
  ASSIGN_OR_RETURN(const cuda::DeviceFacts device, cuda::FindDevice());
  Workers workers(Workers::Available());
  ASSIGN_OR_RETURN(const GpuTensors tensors,
                   GpuTensors::Create(problem, workers));
  ASSIGN_OR_RETURN(GpuTimer timer, GpuTimer::Create());
  StoppingRule rule;
  rule.min_samples = FLAGS_samples;
  rule.max_samples = std::max(rule.max_samples, FLAGS_samples);
  ASSIGN_OR_RETURN(const int chosen, cuda::ChosenDirectTiledInstance(problem));
  std::vector<Row> rows;
  std::vector<std::string> wrong;
  for (int i = 0; i < cuda::kDirectTiledInstanceCount; ++i) {
    ASSIGN_OR_RETURN(const bool takes,
                     cuda::DirectTiledInstanceTakes(i, problem));
    if (!takes) continue;
    Row row;
    row.instance = i;
    ASSIGN_OR_RETURN(row.usage, cuda::FindDirectTiledUsage(i, problem));
    ASSIGN_OR_RETURN(const auto convolution,
                     cuda::MakeDirectTiledConvolution(i, problem));
    const auto run = [&] {
      return convolution->Run(static_cast<const float*>(tensors.x()),
                              static_cast<const float*>(tensors.k()),
                              static_cast<float*>(tensors.y()),
                              /*stream=*/nullptr);
    };
    ASSIGN_OR_RETURN(const MeasuredError error, tensors.Verify(run));
    row.error = error.relative;
    // NaN is larger than no bound.
    if (!(row.error <= MaxError(problem)) || !error.worst.ok()) {
      wrong.push_back(absl::StrCat("instance ", i, " (error ", row.error,
                                   ", c ", error.worst.factor, ")"));
      continue;
    }
    ASSIGN_OR_RETURN(GpuTimes times, timer.Time(run, rule));
    row.times_ns = std::move(times.samples_ns);
    rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return Median(a.times_ns) < Median(b.times_ns);
  });
  absl::PrintF("%s on %s: %.1f GFLOP, %.0f MB, cold L2; %s\n",
               ToString(problem), device.name, problem.flops() / 1e9,
               problem.min_bytes() / 1e6, ToString(rule));
  PrintTable(problem, chosen, rows);
  if (!wrong.empty()) {
    return absl::InternalError(
        absl::StrCat("wrong results, not timed: ", absl::StrJoin(wrong, ", ")));
  }
  if (rows.empty()) {
    return absl::UnimplementedError("no instance takes this problem");
  }
  return absl::OkStatus();
}

absl::Status ParseAndRun(const std::vector<std::string>& args) {
  ASSIGN_OR_RETURN(const ParsedFlags parsed, ParseFlags(args, __FILE__));
  if (parsed.help) {
    std::printf(
        "usage: sweep LAYER [--flags]\n\n"
        "Runs every compiled instance of direct_tiled on one "
        "layer on\nthe GPU, verifies it, times it, and prints a table by time; "
        "* marks the one\nthat the variant runs. LAYER is fa19-L2, say, or "
        "sizes B,C,H,W,M,K.\n\n%s",
        DescribeFlags(__FILE__).c_str());
    return absl::OkStatus();
  }
  if (parsed.positional.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(parsed.positional.size(),
                     " layers are given, expected one; --help says more"));
  }
  if (FLAGS_samples < StoppingRule::kFewestSamples) {
    return absl::InvalidArgumentError(
        absl::StrCat("--samples is ", FLAGS_samples, ", expected at least ",
                     StoppingRule::kFewestSamples));
  }
  ASSIGN_OR_RETURN(const NamedLayer layer,
                   ParseLayer(parsed.positional[0], FLAGS_batch));
  return Sweep(layer.problem);
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  return convlab::RunMain("sweep", [&] {
    return convlab::ParseAndRun({argv + 1, argv + argc});
  });
}
