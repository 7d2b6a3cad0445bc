#include "milestones/runner.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/dataset/fashion_mnist.h"
#include "common/files/files.h"
#include "common/parallel/parallel.h"
#include "common/record/build_info.h"
#include "common/record/host.h"
#include "common/record/run_record.h"
#include "common/record/statistics.h"
#include "common/record/usage.h"
#include "common/status/status.h"
#include "common/weights/weights.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"
#include "kernels/inference/inference.h"
#include "milestones/command_line.h"
#include "milestones/course_output.h"
#include "milestones/milestone.h"
#include "milestones/progress.h"
#include "tools/cpp/runfiles/runfiles.h"

namespace convlab {
namespace {

// Standard output, which the record keeps word for word.
class Transcript {
 public:
  void Print(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    lines_.push_back(line);
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

// The trained weights of a network, among the files that Bazel puts beside the
// program.
absl::StatusOr<std::string> TrainedWeights(const char* program,
                                           const Network& network) {
  using bazel::tools::cpp::runfiles::Runfiles;
  std::string error;
  const std::unique_ptr<Runfiles> runfiles(Runfiles::Create(program, &error));
  if (runfiles == nullptr) {
    return absl::NotFoundError(
        "the trained weights are not beside the program: name a file with "
        "--weights, or use bazel run");
  }
  return runfiles->Rlocation(absl::StrCat("convlab/common/weights/models/",
                                          network.name, ".safetensors"));
}

// Where the network runs.
struct ChosenDevice {
  Backend backend = Backend::kCpu;
  cuda::DeviceFacts gpu;    // of Backend::kCuda
  std::string why_not_gpu;  // for the user; may be empty
};

// Takes the device that the user asked for, or that the milestone is made for.
// Unavailable, naming the way on, if that is a GPU that is not there.
absl::StatusOr<ChosenDevice> ChooseDevice(const Milestone& milestone,
                                          Device asked) {
  ChosenDevice chosen;
  if (asked == Device::kCpu || milestone.hardware == Hardware::kCpu) {
    return chosen;
  }
  const absl::StatusOr<cuda::DeviceFacts> gpu =
      milestone.gpu_variant.empty()
          ? absl::UnavailableError(absl::StrCat(
                milestone.name, " has nothing to run on a GPU in this build"))
          : cuda::FindDevice();
  if (gpu.ok()) {
    chosen.backend = Backend::kCuda;
    chosen.gpu = *gpu;
  } else if (asked == Device::kAuto &&
             milestone.hardware == Hardware::kGpuOrCpu) {
    chosen.why_not_gpu = std::string(gpu.status().message());
  } else {
    return absl::UnavailableError(absl::StrCat(
        gpu.status().message(),
        "; use --device cpu, or carry the bundle (bazel build //tools:bundle) "
        "to a machine with a GPU"));
  }
  return chosen;
}

// "the GPU, NVIDIA H200"
std::string DescribeDevice(const Milestone& milestone, const CommandLine& line,
                           const ChosenDevice& device) {
  if (device.backend == Backend::kCuda) {
    return absl::StrCat("the GPU, ", device.gpu.name);
  }
  std::string text = absl::StrCat("the CPU, ", line.threads, " thread",
                                  line.threads == 1 ? "" : "s");
  if (milestone.hardware == Hardware::kGpu && line.variants.empty()) {
    absl::StrAppend(&text, ", with ", milestone.cpu_variant, " for the GPU's ",
                    milestone.gpu_variant);
  }
  if (!device.why_not_gpu.empty()) {
    absl::StrAppend(&text, "; ", device.why_not_gpu);
  }
  return text;
}

absl::StatusOr<std::vector<const Variant*>> ChooseVariants(
    const Milestone& milestone, const CommandLine& line, Backend backend) {
  std::vector<std::string> names = line.variants;
  if (names.empty()) {
    names.emplace_back(backend == Backend::kCuda ? milestone.gpu_variant
                                                 : milestone.cpu_variant);
  }
  names.resize(line.network->stages.size(), names.front());
  std::vector<const Variant*> variants;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const Variant* variant, FindVariant(backend, name));
    variants.push_back(variant);
  }
  return variants;
}

// Everything about the run but its output and resources.
RunRecord Describe(const Milestone& milestone, const CommandLine& line,
                   const std::vector<std::string>& command,
                   const ChosenDevice& device,
                   const std::vector<const Variant*>& variants, int64_t size) {
  RunRecord record;
  record.milestone = std::string(milestone.name);
  record.command = command;
  record.network = line.network->name;
  record.model = line.model;
  record.split = line.split;
  record.size = size;
  record.device = device.backend == Backend::kCuda ? "gpu" : "cpu";
  record.threads = line.threads;
  record.git_revision = kGitRevision;
  record.build_mode = kBuildMode;
  record.started =
      absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
  record.host = ReadHostFacts();
  record.gpu = {device.gpu.name,
                device.gpu.compute_capability,
                device.gpu.multiprocessors,
                device.gpu.memory_bytes,
                device.gpu.driver_version,
                device.gpu.runtime_version};
  for (size_t i = 0; i < variants.size(); ++i) {
    const Variant& variant = *variants[i];
    const Problem problem = ConvolutionProblem(*line.network, i, size);
    record.convolutions.push_back({problem.batch,
                                   problem.channels,
                                   problem.height,
                                   problem.width,
                                   problem.filters,
                                   problem.kernel_size,
                                   problem.flops(),
                                   problem.min_bytes(),
                                   variant.name,
                                   {},
                                   {}});
    record.variants[variant.name] = {
        std::string(Name(variant.backend)), Rung(variant),
        std::string(Name(variant.accuracy)), variant.summary, variant.reason};
  }
  return record;
}

absl::Status Run(const Milestone& milestone, const CommandLine& line,
                 const std::vector<std::string>& command) {
  if (!line.record.empty()) RETURN_IF_ERROR(CheckWritable(line.record));
  if (!line.profile.empty()) {
    return absl::UnavailableError(
        "this build cannot trace the GPU's work: leave --profile out");
  }
  ASSIGN_OR_RETURN(const ChosenDevice device,
                   ChooseDevice(milestone, line.device));
  ASSIGN_OR_RETURN(const std::vector<const Variant*> variants,
                   ChooseVariants(milestone, line, device.backend));
  const char* const program = command.front().c_str();
  std::string weights_file = line.weights;
  if (weights_file.empty()) {
    ASSIGN_OR_RETURN(weights_file, TrainedWeights(program, *line.network));
  }
  Transcript transcript;
  const auto load_start = std::chrono::steady_clock::now();
  if (line.network->announces_first) transcript.Print("New Inference");
  ASSIGN_OR_RETURN(const Dataset dataset,
                   LoadFashionMnist(line.data, line.split));
  const int64_t size = line.size.value_or(dataset.images.count);
  if (size > dataset.images.count) {
    return absl::InvalidArgumentError(
        absl::StrCat("size is ", size, ", expected 1 to ", dataset.images.count,
                     ", the images of ", line.split));
  }
  RETURN_IF_ERROR(CheckImages(*line.network, dataset.images));
  transcript.Print("Loading fashion-mnist data... done");
  ASSIGN_OR_RETURN(const NetworkWeights weights,
                   LoadWeights(weights_file, *line.network));
  transcript.Print("Loading model... done");
  const std::chrono::nanoseconds load_time =
      std::chrono::steady_clock::now() - load_start;
  if (!line.network->announces_first) transcript.Print("New Inference");

  absl::FPrintF(stderr, "%s: running on %s\n", milestone.name,
                DescribeDevice(milestone, line, device));

  RunRecord record = Describe(milestone, line, command, device, variants, size);
  Workers workers(line.threads);
  InferenceOptions options;
  options.variants = variants;
  options.repeat = line.repeat;
  auto progress = std::make_unique<ProgressBar>();
  options.progress = [&](double share) { progress->Show(share); };
  ASSIGN_OR_RETURN(const InferenceResult result,
                   RunInference(*line.network, weights, dataset.images, size,
                                options, workers));
  progress.reset();
  if (!result.note.empty()) {
    absl::FPrintF(stderr, "%s: %s\n", milestone.name, result.note);
  }

  for (int64_t i = 0; i < size; ++i) {
    record.correct += result.labels[i] == dataset.labels[i];
  }
  for (size_t i = 0; i < result.op_time_ns.size(); ++i) {
    record.convolutions[i].op_time_ns = result.op_time_ns[i];
    record.convolutions[i].kernel_time_ns = result.kernel_time_ns[i];
    if (!milestone.baseline) {
      transcript.Print(OpTimeLine(Median(result.op_time_ns[i])));
    }
  }
  transcript.Print(milestone.baseline
                       ? EvalMetricLine(record.correct, size)
                       : CorrectnessLine(record.correct, size, line.model));
  record.slice = result.slice;
  record.device_memory_peak_bytes = result.device_memory_peak_bytes;
  record.inference_ns = result.inference_ns;
  record.load_ns = load_time.count();
  record.weights = weights_file.substr(weights_file.rfind('/') + 1);
  record.weights_metadata = weights.metadata;
  record.usage = CurrentUsage();
  transcript.Print(FormatUsage(record.usage));
  record.output = transcript.lines();
  if (!line.record.empty()) {
    RETURN_IF_ERROR(WriteRunRecord(line.record, record));
  }
  return absl::OkStatus();
}

absl::Status ParseAndRun(const Milestone& milestone,
                         const std::vector<std::string>& command) {
  ASSIGN_OR_RETURN(
      const CommandLine line,
      ParseCommandLine(milestone, {command.begin() + 1, command.end()}));
  if (line.help || line.list) {
    std::fputs((line.help ? HelpText(milestone) : ListText()).c_str(), stdout);
    return absl::OkStatus();
  }
  return Run(milestone, line, command);
}

}  // namespace

int RunMilestone(absl::string_view name, int argc, char** argv) {
  const absl::Status status =
      ParseAndRun(FindMilestone(name), {argv, argv + argc});
  if (!status.ok()) {
    absl::FPrintF(stderr, "%s: %s\n", name, status.message());
  }
  return ExitStatus(status);
}

}  // namespace convlab
