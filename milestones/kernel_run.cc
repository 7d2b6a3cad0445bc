#include "milestones/kernel_run.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/files/files.h"
#include "common/flags/flags.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "kernels/inference/inference.h"
#include "kernels/judge/convolver.h"
#include "kernels/judge/counters.h"
#include "kernels/judge/process/process.h"
#include "kernels/judge/process/shared_tensors.h"
#include "kernels/judge/source/compile.h"
#include "kernels/judge/trials.h"
#include "kernels/judge/verdict.h"
#include "milestones/counts.h"
#include "milestones/course_output.h"
#include "milestones/kernel_files.h"
#include "milestones/kernel_record.h"
#include "milestones/kernel_text.h"
#include "milestones/progress.h"
#include "milestones/standing.h"

namespace convlab {
namespace {

// The course measured each operation once.
constexpr int kRepeat = 1;

// Whoever wants a quick answer does not wait longer for a call of a GPU, or for
// one of a CPU that takes the plainest loops a few seconds.
constexpr double kQuickSeconds = 15;
constexpr int64_t kQuickFlops = 2'000'000'000;

// What is made once for all kernels of a session, and for all saves of one.
struct Shared {
  std::shared_ptr<SharedMemory> memory = std::make_shared<SharedMemory>();
  std::optional<Standing> standing;
};

// `what` the process is started for, as people are told.
ProcessOptions OptionsOf(const Session& session, const Shared& shared,
                         const char* what) {
  ProcessOptions options;
  options.memory = shared.memory;
  options.gpu = session.backend == Backend::kCuda;
  options.threads = session.line.threads;
  const Problem largest = LargestLayer(*session.line.network, session.size);
  if (session.line.quick && (options.gpu || largest.flops() <= kQuickFlops)) {
    options.seconds = kQuickSeconds;
  }
  options.waiting =
      WaitNotice(options.seconds, what,
                 [&session](const std::string& text) { session.Tell(text); });
  return options;
}

// Runs the network with the kernel; Aborted if the kernel failed.
absl::Status RunNetworkWith(Session& session, KernelProcess& process,
                            KernelRun& run) {
  const TimingRules rules =
      session.line.competition ? kCompetition : TimingRules();
  KernelConvolver convolver(process, session.backend, rules, session.workers);
  InferenceOptions options;
  options.backend = session.backend;
  options.convolver = &convolver;
  options.repeat = session.line.repeat.value_or(kRepeat);
  // The course passed the whole batch in one call, so slices are only made
  // where memory is short: a quarter of the machine's for all activations.
  struct sysinfo machine;
  sysinfo(&machine);
  options.activation_bytes = static_cast<int64_t>(machine.totalram) *
                             machine.mem_unit / 4 /
                             std::min(session.line.threads, 16);
  options.cached_bytes = options.activation_bytes;
  ProgressBar progress;
  options.progress = [&](double share) { progress.Show(share); };
  ASSIGN_OR_RETURN(run.result,
                   RunInference(*session.line.network, session.weights,
                                session.dataset.images, session.size, options,
                                session.workers));
  for (const int64_t ns : convolver.whole_ns()) {
    run.whole_ns.push_back({ns / options.repeat});
  }
  run.device_bytes = convolver.device_bytes();
  return absl::OkStatus();
}

// A kernel whose network finds other answers than a verified convolution is
// wrong, also if the judge's trials did not find out why.
absl::Status CheckAnswers(Session& session, KernelRun& run) {
  if (!IsRight(run.verdict)) return absl::OkStatus();
  RETURN_IF_ERROR(RecordExpected(session));
  const absl::Status counts =
      JudgeCounts(run.correct, MaxChangedAnswers(run.verdict.accuracy),
                  /*strict=*/true, session.record);
  if (counts.ok()) return absl::OkStatus();
  run.verdict.outcome = VerdictOutcome::kWrong;
  run.verdict.reason = {
      absl::StrCat("the network's answers: ", counts.message()),
      "the trials did not show why: does it keep something between calls?"};
  return absl::OkStatus();
}

// Where the judge has timed the network's convolutions, with inputs that were
// new and outputs that were right, its samples take the place of the network's.
// A competition has rules of its own.
void TakeVerifiedTimes(const Session& session, KernelRun& run) {
  if (!IsRight(run.verdict) || session.line.competition) return;
  for (size_t i = 0; i < run.verdict.layers.size(); ++i) {
    const LayerTimes& times = run.verdict.layers[i];
    if (times.op_ns.empty()) continue;
    run.result->op_time_ns[i] = times.op_ns;
    run.result->kernel_time_ns[i] = times.kernel_ns;
    run.whole_ns[i] = times.whole_ns;
  }
}

// The lines of the file's own term.
void PrintTermsLines(Session& session, const KernelRun& run) {
  const InferenceResult& result = *run.result;
  const int64_t correct = run.correct.back();
  const CourseTerm term = TermOf(run.compiled.source.kernel_interface);
  for (size_t i = 0; i < result.op_time_ns.size(); ++i) {
    const double op_ns = Median(result.op_time_ns[i]);
    if (term != CourseTerm::kMiniDnn) {
      session.Print(OpTimeLine(op_ns));
      continue;
    }
    const bool on_gpu = session.backend == Backend::kCuda;
    for (const std::string& line : ConvolutionLines(
             on_gpu ? std::optional<double>(Median(run.whole_ns[i]))
                    : std::nullopt,
             op_ns)) {
      session.Print(line);
    }
  }
  if (term == CourseTerm::kMiniDnn) {
    session.Print("");
    session.Print(TestAccuracyLine(correct, session.size));
  } else {
    session.Print(CorrectnessLine(correct, session.size, session.line.model));
  }
}

// Prints a paragraph of the verdict: its title, and lines behind it.
void PrintParagraph(Session& session, absl::string_view title,
                    const std::vector<std::string>& lines) {
  constexpr size_t kIndent = 10;
  for (size_t i = 0; i < lines.size(); ++i) {
    session.Print(
        absl::StrCat(absl::StrFormat("%-*s", kIndent, i == 0 ? title : ""),
                     WrapText(lines[i], kIndent, kIndent)));
  }
}

void PrintVerdict(Session& session, const KernelRun& run,
                  const std::optional<Standing>& standing) {
  const CompiledKernel& compiled = run.compiled;
  std::vector<std::string> lines = {absl::StrFormat(
      "in %.1f s, with the interface \"%s\", for %s", compiled.seconds,
      Name(compiled.source.kernel_interface),
      session.backend == Backend::kCuda ? session.gpu.name : "this CPU")};
  for (const DeviceFunction& function : compiled.functions) {
    lines.push_back(Describe(function));
  }
  lines.insert(lines.end(), compiled.warnings.begin(), compiled.warnings.end());
  session.Print("");
  PrintParagraph(session, "compiled", lines);
  session.Print(ToString(run.verdict));
  PrintParagraph(session, "times",
                 DescribeTimes(run.verdict.layers, run.device_bytes));
  const std::vector<double> op =
      Medians(run.verdict.layers, &LayerTimes::op_ns);
  if (standing && !op.empty() && run.verdict.op_time_counts) {
    double sum = 0;
    for (const double ns : op) sum += ns;
    PrintParagraph(session, "place", DescribeStanding(*standing, sum));
  }
}

// What bounds the kernel on the layer with the most work, by hardware counters;
// empty where the machine has none.
std::vector<std::string> Bound(Session& session, const CompiledKernel& compiled,
                               const Shared& shared) {
  // Counters take several runs of each launch; shares need no large batch.
  constexpr int64_t kImages = 500;
  const Problem problem =
      LargestLayer(*session.line.network, std::min(session.size, kImages));
  const auto read = [&]() -> absl::StatusOr<KernelCounters> {
    ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
    return ReadCounters(compiled.library, problem,
                        OptionsOf(session, shared, "reading hardware counters"),
                        folder.path());
  };
  const absl::StatusOr<KernelCounters> counters = read();
  if (!counters.ok()) {
    session.Tell(
        absl::StrCat("no hardware counters: ", counters.status().message()));
    return {};
  }
  return DescribeCounters(*counters);
}

// What a traced process did; Unavailable if nothing was seen.
absl::StatusOr<Activities> TraceOf(KernelProcess& process) {
  ASSIGN_OR_RETURN(Activities activities, process.Traced());
  if (activities.tool.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "the kernel's process was not traced: ", process.Protection()));
  }
  return activities;
}

// Runs and judges one kernel that is compiled, prints everything and records
// it. Errors are failures of this program or the machine.
absl::StatusOr<bool> RunOne(Session& session, const CompiledKernel& compiled,
                            Shared& shared) {
  KernelRun run;
  run.compiled = compiled;
  const KernelSource& source = compiled.source;
  if (session.ladder || session.kernels.size() > 1) {
    session.Print(absl::StrCat("== ", source.name, " =="));
    if (TermOf(source.kernel_interface) != CourseTerm::kMiniDnn) {
      session.Print("New Inference");
    }
  }
  ProcessOptions start = OptionsOf(session, shared, "running the network");
  start.trace = session.traced;
  start.guard = !session.traced;
  absl::StatusOr<std::unique_ptr<KernelProcess>> process =
      KernelProcess::Start(compiled.library, start);
  const absl::Status network =
      process.ok() ? RunNetworkWith(session, **process, run) : process.status();
  if (!network.ok() && !absl::IsAborted(network)) return network;
  if (network.ok()) {
    run.correct = CorrectAnswers(session, *run.result);
    if (!run.result->note.empty()) session.Tell(run.result->note);
    if (session.traced) session.kernel_activities = TraceOf(**process);
  }
  JudgeOptions options;
  options.network = session.line.network;
  options.batch = session.size;
  options.quick = session.line.quick;
  if (options.quick) {
    options.samples = 3;
    options.timed_seconds = 2;
  }
  options.process = OptionsOf(session, shared, "judging");
  {
    ProgressBar progress;
    options.progress = [&](double share) { progress.Show(share); };
    // One that has failed is dead, and the judge looks for the reason in
    // another; one that is traced is slower.
    const bool reuse = network.ok() && !session.traced;
    if (process.ok() && !reuse) process->reset();
    ASSIGN_OR_RETURN(run.verdict, Judge(compiled, options, session.workers,
                                        reuse ? *std::move(process) : nullptr));
  }
  if (network.ok()) {
    RETURN_IF_ERROR(CheckAnswers(session, run));
    TakeVerifiedTimes(session, run);
    PrintTermsLines(session, run);
  } else {
    session.Print(absl::StrCat("FAILED: ", network.message()));
  }
  if (IsRight(run.verdict) && !shared.standing) {
    ASSIGN_OR_RETURN(shared.standing, MeasureStanding(session));
  }
  PrintVerdict(session, run, shared.standing);
  if (IsRight(run.verdict) && session.backend == Backend::kCuda &&
      !session.line.quick) {
    run.bound = Bound(session, compiled, shared);
    PrintParagraph(session, "bound", run.bound);
  }
  AddToRecord(session, run);
  return IsRight(run.verdict) && network.ok();
}

// Compiles all kernels before any runs, so that a misspelt file ends the
// program at once.
absl::StatusOr<std::vector<CompiledKernel>> CompileAll(
    const Session& session, const std::vector<KernelSource>& sources,
    const std::string& folder) {
  std::vector<CompiledKernel> compiled;
  for (const KernelSource& source : sources) {
    CompileOptions options;
    options.folder = folder;
    options.compute_capability = session.gpu.compute_capability;
    ASSIGN_OR_RETURN(CompiledKernel kernel, CompileKernel(source, options));
    compiled.push_back(std::move(kernel));
  }
  return compiled;
}

// Makes what does not depend on the kernels and takes seconds.
absl::Status Prepare(Session& session, Shared& shared) {
  // On a CPU the compiler would disturb the times, and few images are run.
  if (session.backend != Backend::kCuda) return absl::OkStatus();
  // Touching gigabytes and timing the lessons both take a second or two, on the
  // host and on the GPU. Without the room, it is made when the first kernel
  // needs it, or not at all.
  auto reserving = std::async(std::launch::async, [&] {
    shared.memory->Reserve(LayersOf(*session.line.network, session.size))
        .IgnoreError();
  });
  if (shared.standing) return absl::OkStatus();
  ASSIGN_OR_RETURN(shared.standing, MeasureStanding(session));
  return absl::OkStatus();
}

absl::Status RunSources(Session& session,
                        const std::vector<KernelSource>& sources,
                        Shared& shared) {
  ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  for (const KernelSource& source : sources) {
    session.Tell(absl::StrCat("compiling ", source.path));
  }
  // The compiler needs neither the GPU nor more than one core.
  auto compiling = std::async(std::launch::async, [&] {
    return CompileAll(session, sources, folder.path());
  });
  const absl::Status prepared = Prepare(session, shared);
  const absl::StatusOr<std::vector<CompiledKernel>> compiled = compiling.get();
  for (const std::string& error : CompilerErrors(compiled.status())) {
    session.Tell(error);
  }
  RETURN_IF_ERROR(compiled.status());
  RETURN_IF_ERROR(prepared);
  std::vector<std::string> failed;
  for (const CompiledKernel& kernel : *compiled) {
    ASSIGN_OR_RETURN(const bool right, RunOne(session, kernel, shared));
    if (!right) failed.push_back(kernel.source.name);
  }
  if (failed.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(failed.size() == 1 ? "this kernel is not right: "
                                      : "these kernels are not right: ",
                   absl::StrJoin(failed, ", ")));
}

}  // namespace

absl::Status RunKernels(Session& session) {
  Shared shared;
  absl::Status status = RunSources(session, session.kernels, shared);
  if (!status.ok() && !absl::IsFailedPrecondition(status)) return status;
  RETURN_IF_ERROR(RecordExpected(session));
  JudgeKernelCounts(session);
  return status;
}

absl::Status WatchKernels(Session& session) {
  Shared shared;
  std::vector<std::string> digests;
  while (true) {
    absl::StatusOr<std::vector<KernelSource>> sources =
        ReadKernels(session.milestone, session.line);
    std::vector<std::string> now;
    if (sources.ok()) {
      for (const KernelSource& source : *sources) now.push_back(source.digest);
    } else {
      now = {std::string(sources.status().message())};
    }
    if (now == digests) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      continue;
    }
    digests = std::move(now);
    const auto start = std::chrono::steady_clock::now();
    absl::Status status = sources.status();
    if (status.ok()) status = RunSources(session, *sources, shared);
    if (!status.ok()) session.Tell(std::string(status.message()));
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    session.Tell(absl::StrFormat(
        "%.1f s; waiting for the next save, Ctrl-C ends", seconds.count()));
  }
}

}  // namespace convlab
