#include "milestones/session.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/files/files.h"
#include "common/record/activities.h"
#include "common/record/build_info.h"
#include "common/record/host.h"
#include "common/record/profile_text.h"
#include "common/record/recorded_command.h"
#include "common/record/trace.h"
#include "common/record/usage.h"
#include "common/status/status.h"
#include "kernels/convolution/checking/verify.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/library.h"
#include "kernels/cuda/trace.h"
#include "kernels/judge/verdict.h"
#include "kernels/measure/gpu_facts.h"
#include "kernels/simd/cpu_target.h"
#include "milestones/counts.h"
#include "milestones/course_output.h"
#include "milestones/kernel_files.h"
#include "milestones/model.h"
#include "milestones/progress.h"

namespace convlab {
namespace {

// Chooses the device that the user asked for, or the milestone's. Returns
// Unavailable, with the alternatives, if that is a GPU and there is none.
absl::Status ChooseDevice(Session& session) {
  Device asked = session.line.device;
  const Hardware hardware = session.milestone.hardware;
  if (!session.kernels.empty()) {
    asked = BackendOf(session.kernels, session.milestone, session.line) ==
                    Backend::kCuda
                ? Device::kGpu
                : Device::kCpu;
  }
  if (asked == Device::kCpu || hardware == Hardware::kCpu) {
    return absl::OkStatus();
  }
  const absl::StatusOr<cuda::DeviceFacts> gpu = cuda::FindDevice();
  if (gpu.ok()) {
    session.backend = Backend::kCuda;
    session.gpu = *gpu;
  } else if (asked == Device::kAuto && hardware == Hardware::kGpuOrCpu) {
    session.why_not_gpu = std::string(gpu.status().message());
  } else {
    return absl::UnavailableError(absl::StrCat(
        gpu.status().message(),
        session.kernels.empty() ? "; use --device cpu, or carry" : "; carry",
        " the bundle (bazel build //tools:bundle) to a machine with a GPU"));
  }
  return absl::OkStatus();
}

// "the GPU, NVIDIA H200"
std::string DescribeDevice(const Session& session) {
  if (session.backend == Backend::kCuda) {
    return absl::StrCat("the GPU, ", session.gpu.name);
  }
  std::string text = "the CPU";
  if (session.ladder || !session.kernels.empty()) {
    // Other runs say at their end what their variants used.
    absl::StrAppend(&text, ", at most ", session.line.threads, " thread",
                    session.line.threads == 1 ? "" : "s");
  }
  const Milestone& milestone = session.milestone;
  if (milestone.hardware == Hardware::kGpu && !session.ladder &&
      session.line.variants.empty()) {
    absl::StrAppend(&text, ", with ", milestone.cpu_variant, " for the GPU's ",
                    milestone.gpu_variant);
  }
  if (!session.why_not_gpu.empty()) {
    absl::StrAppend(&text, "; ", session.why_not_gpu);
  }
  return text;
}

// The term whose lines the run prints: that of the contributed kernels.
CourseTerm TermOf(const Session& session) {
  return session.kernels.empty()
             ? CourseTerm::kMxnet
             : TermOf(session.kernels.front().kernel_interface);
}

// Records everything that is known of the run before it starts.
RunRecord Describe(const Session& session,
                   const std::vector<std::string>& command,
                   const std::string& weights_file) {
  RunRecord record;
  record.milestone = std::string(session.milestone.name);
  record.command = RecordedCommand(command);
  record.network = session.line.network->name;
  record.model = session.line.model;
  record.split = session.line.split;
  record.size = session.size;
  record.device = session.backend == Backend::kCuda ? "gpu" : "cpu";
  record.threads = session.line.threads;
  if (session.backend == Backend::kCpu) {
    record.cpu_target = std::string(Name(ChosenCpuTarget()));
  }
  record.git_revision = kGitRevision;
  record.build_mode = kBuildMode;
  record.started =
      absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
  record.host = ReadHostFacts();
  record.gpu = FactsOf(session.gpu);
  record.weights = weights_file.substr(weights_file.rfind('/') + 1);
  record.weights_metadata = session.weights.metadata;
  return record;
}

// The number of images to classify.
absl::StatusOr<int64_t> SizeOf(const CommandLine& line,
                               const Dataset& dataset) {
  const int64_t images = dataset.images.count;
  const int64_t size = line.size.value_or(images);
  if (size <= images) return size;
  return absl::InvalidArgumentError(
      absl::StrCat("size is ", size, ", expected 1 to ", images,
                   ", the images of ", line.split));
}

// Summarizes the trace, also in the record. If tracing failed, the record and a
// message give the reason.
absl::StatusOr<Activities> EndTrace(Session& session) {
  if (!session.traced) return Activities();
  absl::StatusOr<Activities> activities =
      session.kernels.empty() ? cuda::StopTrace() : session.kernel_activities;
  Profile& profile = *session.record.profile;
  if (activities.ok()) {
    profile = MakeProfile(*activities);
  } else {
    const std::string reason(activities.status().message());
    session.Tell("no profile: " + reason);
    profile.gpu_activities.missing = profile.api_calls.missing = reason;
  }
  return activities;
}

}  // namespace

void Session::Print(const std::string& text) {
  std::printf("%s\n", Printable(text).c_str());
  std::fflush(stdout);
  record.output.push_back(text);
}

void Session::Tell(const std::string& text) const {
  if (tell) {
    tell(text);
    return;
  }
  absl::FPrintF(stderr, "%s: %s\n", milestone.name, OneLine(text));
}

void Session::TellFarSample(
    const std::vector<ConvolutionRecord>& convolutions) const {
  const std::string text = DescribeFarSample(convolutions);
  if (!text.empty()) Tell(text);
}

absl::Status CheckInputs(const Milestone& milestone, const CommandLine& line) {
  RETURN_IF_ERROR(ReadKernels(milestone, line).status());
  ASSIGN_OR_RETURN(const Dataset dataset,
                   LoadFashionMnist(line.data, line.split));
  return SizeOf(line, dataset).status();
}

absl::StatusOr<std::unique_ptr<Session>> OpenSession(const Milestone& milestone,
                                                     const CommandLine& line) {
  if (!line.record.empty()) RETURN_IF_ERROR(CheckWritable(line.record));
  if (!line.profile.empty()) RETURN_IF_ERROR(CheckWritable(line.profile));
  RETURN_IF_ERROR(ForceCpuTarget(line.cpu_target));
  auto session = std::make_unique<Session>(milestone, line);
  ASSIGN_OR_RETURN(session->kernels, ReadKernels(milestone, line));
  // This precedes the first search for a GPU, so that no call is missed.
  absl::Status tracing;
  if (!line.profile.empty() && session->kernels.empty()) {
    tracing = cuda::StartTrace();
  }
  RETURN_IF_ERROR(ChooseDevice(*session));
  if (line.profile.empty()) return session;
  if (session->backend != Backend::kCuda) {
    session->Tell("no profile: the run is on the CPU");
  } else if (!tracing.ok()) {
    session->Tell(absl::StrCat("no profile: ", tracing.message()));
  } else {
    session->traced = true;
  }
  return session;
}

absl::Status LoadSession(Session& session,
                         const std::vector<std::string>& command) {
  const CommandLine& line = session.line;
  ASSIGN_OR_RETURN(const std::string weights_file,
                   WeightsFile(line.found, line.weights, command.front()));
  const auto start = std::chrono::steady_clock::now();
  // Weights are read while the images are. A bad data set is reported before
  // bad weights.
  auto weights = std::async(std::launch::async, [&] {
    return ReadWeights(line.found, weights_file);
  });
  ASSIGN_OR_RETURN(session.dataset, LoadFashionMnist(line.data, line.split));
  ASSIGN_OR_RETURN(session.size, SizeOf(line, session.dataset));
  RETURN_IF_ERROR(CheckImages(*line.network, session.dataset.images));
  ASSIGN_OR_RETURN(session.weights, weights.get());
  const std::chrono::nanoseconds load_time =
      std::chrono::steady_clock::now() - start;

  session.record = Describe(session, command, weights_file);
  session.record.load_ns = load_time.count();
  // A ladder announces each of its inferences.
  if (TermOf(session) == CourseTerm::kMiniDnn) {
    session.Print(BatchSizeLine(session.size));
    session.Print("Loading fashion-mnist data...Done");
    session.Print("Loading model...Done");
  } else {
    const bool first = line.network->announces_first;
    if (first && !session.ladder) session.Print("New Inference");
    session.Print("Loading fashion-mnist data... done");
    session.Print("Loading model... done");
    if (!first && !session.ladder) session.Print("New Inference");
  }
  if (line.found.onnx != nullptr) {
    for (const std::string& note : line.found.onnx->notes) session.Tell(note);
  }
  session.Tell("running on " + DescribeDevice(session));
  if (session.traced) {
    // From here on the run counts as traced, even if the trace fails.
    session.record.profile.emplace();
    session.Tell("traced: op times include the cost of tracing");
  }
  return absl::OkStatus();
}

absl::Status CloseSession(Session& session) {
  absl::StatusOr<Activities> activities = EndTrace(session);
  for (const cuda::Library* library : cuda::OpenedLibraries()) {
    session.record.gpu.libraries[library->name] =
        cuda::ToString(library->version);
  }
  session.record.usage = CurrentUsage();
  session.Print(FormatUsage(session.record.usage));
  if (!session.line.record.empty()) {
    RETURN_IF_ERROR(WriteRunRecord(session.line.record, session.record));
  }
  if (!session.traced || !activities.ok()) return absl::OkStatus();
  RETURN_IF_ERROR(WriteFileAtomically(
      session.line.profile,
      ChromeTrace(*activities, session.milestone.name, session.gpu.name)));
  absl::FPrintF(stderr, "==%d== Profiling result:\n%s", activities->process,
                ProfileText(*session.record.profile));
  return absl::OkStatus();
}

absl::StatusOr<InferenceResult> RunNetwork(
    Session& session, const std::vector<const Variant*>& variants, int repeat) {
  InferenceOptions options;
  options.backend = session.backend;
  options.variants = variants;
  options.library_layers = session.milestone.baseline;
  options.fuse = session.line.fuse;
  options.repeat = repeat;
  std::optional<ProgressBar> bar;
  options.progress = session.progress;
  if (!options.progress) {
    bar.emplace();
    options.progress = [&](double share) { bar->Show(share); };
  }
  return RunInference(*session.line.network, session.weights,
                      session.dataset.images, session.size, options,
                      session.workers);
}

std::vector<int64_t> CorrectAnswers(const Session& session,
                                    const InferenceResult& result) {
  std::vector<int64_t> counts;
  for (const std::vector<uint8_t>& labels : result.labels) {
    int64_t& correct = counts.emplace_back(0);
    for (int64_t i = 0; i < session.size; ++i) {
      correct += labels[i] == session.dataset.labels[i];
    }
  }
  return counts;
}

absl::StatusOr<double> VerifyLayers(
    Session& session, const Variant& variant,
    const std::vector<const Variant*>& variants) {
  // More than one image, and few enough for the float64 reference.
  constexpr int64_t kImages = 3;
  Resources resources;
  resources.workers = &session.workers;
  const Network& network = *session.line.network;
  double largest = 0;
  for (size_t i = 0; i < network.Convolutions().size(); ++i) {
    if (variants[i] != &variant) continue;
    ASSIGN_OR_RETURN(
        const double error,
        Verify(variant, ConvolutionProblem(network, i, kImages), resources));
    largest = std::max(largest, error);
  }
  return largest;
}

VerificationRecord Verified(const Variant& variant,
                            const std::vector<const Variant*>& variants,
                            double relative_error) {
  VerificationRecord verification;
  verification.outcome = std::string(Name(VerdictOutcome::kRight));
  verification.relative_error = relative_error;
  verification.accuracy_class = std::string(Name(variant.accuracy));
  verification.problems_tried = verification.problems_right =
      static_cast<int>(std::count(variants.begin(), variants.end(), &variant));
  verification.judge_version = kJudgeVersion;
  return verification;
}

std::vector<ConvolutionRecord> DescribeConvolutions(
    const Session& session, const std::vector<std::string>& names,
    const InferenceResult& result) {
  std::vector<ConvolutionRecord> convolutions;
  for (size_t i = 0; i < names.size(); ++i) {
    const Problem problem =
        ConvolutionProblem(*session.line.network, i, session.size);
    convolutions.push_back({problem.batch, problem.channels, problem.height,
                            problem.width, problem.filters, problem.kernel_size,
                            problem.flops(), problem.min_bytes(), names[i],
                            result.op_time_ns[i], result.kernel_time_ns[i],
                            result.fused[i]});
    if (result.threads[i] > 0) convolutions.back().threads = result.threads[i];
  }
  return convolutions;
}

VariantRecord DescribeVariant(const Variant& variant) {
  return {std::string(Name(variant.backend)),
          Rung(variant),
          std::string(Name(variant.accuracy)),
          variant.summary,
          variant.reason,
          std::string(Name(variant.track)),
          variant.detour == nullptr ? "" : variant.detour,
          variant.by_cpu_target ? std::string(Name(ChosenCpuTarget())) : ""};
}

}  // namespace convlab
