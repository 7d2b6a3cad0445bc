#include "milestones/ladder_run.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/accuracy/accuracy.h"
#include "common/files/files.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "kernels/baseline/convolution.h"
#include "kernels/convolution/fastest.h"
#include "kernels/convolution/variants.h"
#include "kernels/measure/overlap.h"
#include "milestones/counts.h"
#include "milestones/course_output.h"
#include "milestones/ladder_text.h"
#include "milestones/progress.h"
#include "milestones/rung_process.h"

namespace convlab {
namespace {

// How the failure of a variant begins that does not take the network.
constexpr char kRejected[] = "rejected: ";

// On the GPU a repetition takes milliseconds, so that several are affordable.
constexpr int kGpuRepeat = 5;

// Whether the variant takes all of the network's layers; otherwise the reason.
absl::Status SupportsNetwork(const Session& session, const Variant& variant) {
  const Network& network = *session.line.network;
  for (size_t i = 0; i < network.Convolutions().size(); ++i) {
    RETURN_IF_ERROR(variant.supports(
        ConvolutionProblem(network, i, session.size), Resources()));
  }
  return absl::OkStatus();
}

// Whether the status says that the machine lacks something, not that the
// measurement failed.
bool CannotBeHad(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsUnimplemented(status) ||
         absl::IsResourceExhausted(status);
}

// Adds cuDNN's best time for each layer to the record. Without cuDNN a message
// says so.
absl::Status MeasurePeer(Session& session) {
  const Network& network = *session.line.network;
  std::vector<PeerRecord> peers;
  for (size_t i = 0; i < network.Convolutions().size(); ++i) {
    const absl::StatusOr<CudnnMeasurement> measured =
        MeasureCudnn(ConvolutionProblem(network, i, session.size),
                     AccuracyClass::kFp32, session.workers);
    if (!measured.ok() && !CannotBeHad(measured.status())) {
      return Annotate(measured.status(), "cuDNN");
    }
    if (!measured.ok() || measured->best(AccuracyClass::kFp32) == nullptr) {
      session.Tell(absl::StrCat(
          "cuDNN was not measured: ",
          measured.ok() ? "no algorithm takes the layer"
                        : std::string(measured.status().message())));
      return absl::OkStatus();
    }
    const CudnnPlan& best = *measured->best(AccuracyClass::kFp32);
    PeerRecord peer;
    peer.layer = static_cast<int>(i) + 1;
    peer.library = absl::StrCat("cuDNN ", measured->version);
    peer.algorithm = absl::StrCat(best.algorithm, " ", best.layout);
    peer.accuracy_class = std::string(Name(AccuracyClass::kFp32));
    peer.relative_error = best.error.relative;
    peer.plans = static_cast<int>(measured->plans.size());
    peer.kernel_time_ns = best.samples_ns;
    peers.push_back(std::move(peer));
  }
  session.record.peers = std::move(peers);
  return absl::OkStatus();
}

// Adds to the record the gain of streams in a program whose images are in host
// memory.
absl::Status MeasureOverlap(Session& session) {
  // Pinned memory is taken from the whole machine: few enough images for any
  // machine.
  const int64_t images = std::min<int64_t>(session.size, 2000);
  constexpr int kSlices = 8;
  const Network& network = *session.line.network;
  for (size_t i = 0; i < network.Convolutions().size(); ++i) {
    const Problem problem = ConvolutionProblem(network, i, images);
    ASSIGN_OR_RETURN(const Variant* fastest,
                     FastestVariant(Backend::kCuda, problem));
    const absl::StatusOr<OverlapTimes> times =
        MeasureStreams(*fastest, problem, kSlices);
    if (CannotBeHad(times.status())) {
      session.Tell(absl::StrCat("overlap was not measured: ",
                                std::string(times.status().message())));
      return absl::OkStatus();
    }
    if (!times.ok()) return times.status();
    session.record.overlaps.push_back({static_cast<int>(i) + 1, images, kSlices,
                                       times->serial_ns, times->overlapped_ns});
  }
  return absl::OkStatus();
}

// The variants of the session's backend, in the order of the ladder.
std::vector<const Variant*> Rungs(const Session& session) {
  std::vector<const Variant*> rungs;
  for (const Variant* variant : Variants()) {
    if (variant->backend == session.backend) rungs.push_back(variant);
  }
  return rungs;
}

// Finds errors that a small batch may hide: DataLoss unless the numbers of
// correct answers are the same in all repetitions and, within the tolerance of
// the variant's class, those of the first variant.
absl::Status CheckCountsOf(const Session& session, const Variant& variant,
                           const LadderRun& run) {
  RETURN_IF_ERROR(CheckRepetitions(run.repetitions_correct));
  const Variant& first = *Rungs(session).front();
  for (const LadderRun& other : session.record.ladder) {
    if (other.variant != first.name || !other.failure.empty()) continue;
    RETURN_IF_ERROR(
        CheckCounts(run.repetitions_correct, other.correct,
                    MaxChangedAnswers(variant.accuracy),
                    absl::StrCat(other.variant, " has ", other.correct)));
  }
  return absl::OkStatus();
}

// Verifies and times one variant.
absl::Status Measure(Session& session, const Variant& variant, int repeat,
                     LadderRun& run) {
  const std::vector<const Variant*> variants(
      session.line.network->Convolutions().size(), &variant);
  ASSIGN_OR_RETURN(run.relative_error,
                   VerifyLayers(session, variant, variants));
  ASSIGN_OR_RETURN(const InferenceResult result,
                   RunNetwork(session, variants, repeat));
  if (!result.note.empty()) session.Tell(result.note);
  run.convolutions = DescribeConvolutions(
      session, std::vector<std::string>(variants.size(), variant.name), result);
  run.repetitions_correct = CorrectAnswers(session, result);
  run.correct = run.repetitions_correct.back();
  run.inference_ns = result.inference_ns;
  run.slice = result.slice;
  run.device_memory_peak_bytes = result.device_memory_peak_bytes;
  return absl::OkStatus();
}

// Runs one rung in this process. `begin` is called unless the rung is rejected;
// any error becomes run.failure.
LadderRun RunRung(Session& session, const Variant& variant,
                  const std::function<void()>& begin) {
  LadderRun run;
  run.variant = variant.name;
  if (absl::Status supported = SupportsNetwork(session, variant);
      !supported.ok()) {
    run.failure = absl::StrCat(CannotBeHad(supported) ? kRejected : "FAILED: ",
                               supported.message());
    return run;
  }
  begin();
  const int repeat = session.line.repeat.value_or(
      session.backend == Backend::kCuda ? kGpuRepeat : 1);
  if (absl::Status status = Measure(session, variant, repeat, run);
      !status.ok()) {
    run.failure = absl::StrCat("FAILED: ", status.message());
  }
  return run;
}

// Prints the heading of a rung that begins.
void Announce(Session& session, const std::string& variant) {
  session.Print(absl::StrCat("== ", variant, " =="));
  session.Print("New Inference");
}

// Checks the counts of a rung that has ended, prints its lines, and adds it to
// the record. Returns whether it is right.
bool Conclude(Session& session, const Variant& variant, LadderRun run) {
  if (run.failure.empty()) {
    if (absl::Status status = CheckCountsOf(session, variant, run);
        !status.ok()) {
      run.failure = absl::StrCat("FAILED: ", status.message());
    }
  }
  const bool rejected = absl::StartsWith(run.failure, kRejected);
  const bool right = run.failure.empty() || rejected;
  if (run.failure.empty()) {
    session.record.variants[variant.name].verification =
        Verified(variant,
                 std::vector<const Variant*>(
                     session.line.network->Convolutions().size(), &variant),
                 run.relative_error);
    for (const ConvolutionRecord& convolution : run.convolutions) {
      session.Print(OpTimeLine(Median(convolution.op_time_ns)));
    }
    session.Print(
        CorrectnessLine(run.correct, session.size, session.line.model));
    session.TellFarSample(run.convolutions);
  } else if (!rejected) {
    session.Print(run.failure);
  }
  session.record.ladder.push_back(std::move(run));
  return right;
}

// The command that started this program, by which another process may be
// started.
absl::StatusOr<std::vector<std::string>> OwnCommand() {
  ASSIGN_OR_RETURN(std::string words, ReadFile("/proc/self/cmdline"));
  if (!words.empty() && words.back() == '\0') words.pop_back();
  return std::vector<std::string>(absl::StrSplit(words, '\0'));
}

// Runs all rungs in processes of their own; adds the names of those that failed
// to `failed`.
absl::Status RunRungsInProcesses(Session& session,
                                 std::vector<std::string>& failed) {
  const std::vector<const Variant*> rungs = Rungs(session);
  RungListener listener;
  std::optional<ProgressBar> bar;
  listener.begin = [&](const std::string& variant) {
    Announce(session, variant);
    bar.emplace();
  };
  listener.progress = [&](double share) {
    if (bar) bar->Show(share);
  };
  listener.note = [&](const std::string& text) { session.Tell(text); };
  // Not the record's: the bundle's program has the milestone's name as well.
  ASSIGN_OR_RETURN(const std::vector<std::string> command, OwnCommand());
  for (size_t next = 0; next < rungs.size();) {
    ASSIGN_OR_RETURN(const auto process, RungProcess::Start(command, next));
    while (true) {
      ASSIGN_OR_RETURN(std::optional<LadderRun> run, process->Next(listener));
      bar.reset();
      if (!run) break;
      if (next >= rungs.size() || run->variant != rungs[next]->name) {
        return absl::InternalError(absl::StrCat(
            "the process that runs the variants sent ", run->variant));
      }
      if (!Conclude(session, *rungs[next], *std::move(run))) {
        failed.emplace_back(rungs[next]->name);
      }
      ++next;
    }
  }
  return absl::OkStatus();
}

// Whether all are wrong in the same way: the others are compared with the
// first.
void JudgeFirst(Session& session) {
  const Variant& first = *Rungs(session).front();
  for (const LadderRun& run : session.record.ladder) {
    if (run.variant != first.name || !run.failure.empty()) continue;
    session.counted.Update(JudgeCounts(run.repetitions_correct,
                                       MaxChangedAnswers(first.accuracy),
                                       session.line.strict, session.record));
  }
}

}  // namespace

void RunRungs(Session& session, const RungReporter& reporter) {
  const std::vector<const Variant*> rungs = Rungs(session);
  session.progress = [&](double share) { reporter.Progress(share); };
  session.tell = [&](const std::string& text) { reporter.Note(text); };
  for (size_t i = reporter.first(); i < rungs.size(); ++i) {
    const LadderRun run =
        RunRung(session, *rungs[i], [&] { reporter.Begin(rungs[i]->name); });
    reporter.End(run, session.size);
    if (!run.failure.empty() && !absl::StartsWith(run.failure, kRejected)) {
      return;
    }
  }
}

absl::Status RunLadder(Session& session) {
  std::vector<std::string> failed;
  for (const Variant* variant : Rungs(session)) {
    session.record.variants[variant->name] = DescribeVariant(*variant);
  }
  if (session.traced) {
    // The trace is that of this process.
    for (const Variant* variant : Rungs(session)) {
      LadderRun run =
          RunRung(session, *variant, [&] { Announce(session, variant->name); });
      if (!Conclude(session, *variant, std::move(run))) {
        failed.emplace_back(variant->name);
      }
    }
  } else {
    RETURN_IF_ERROR(RunRungsInProcesses(session, failed));
  }
  if (session.backend == Backend::kCuda) {
    for (const auto& [what, status] :
         {std::pair("the library's time", MeasurePeer(session)),
          std::pair("streams at program level", MeasureOverlap(session))}) {
      if (status.ok()) continue;
      session.Print(absl::StrCat("FAILED: ", status.message()));
      failed.emplace_back(what);
    }
  }
  session.Print(LadderText(session.record));
  JudgeFirst(session);
  if (failed.empty()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("failed: ", absl::StrJoin(failed, ", ")));
}

}  // namespace convlab
