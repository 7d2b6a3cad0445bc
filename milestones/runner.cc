#include "milestones/runner.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/accuracy/accuracy.h"
#include "common/record/statistics.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "kernels/baseline/convolution.h"
#include "kernels/convolution/fastest.h"
#include "kernels/convolution/variants.h"
#include "milestones/command_line.h"
#include "milestones/counts.h"
#include "milestones/course_output.h"
#include "milestones/kernel_run.h"
#include "milestones/ladder_run.h"
#include "milestones/milestone.h"
#include "milestones/rung_process.h"
#include "milestones/session.h"

namespace convlab {
namespace {

// Returns one variant per convolution: the user's, or the milestone's.
absl::StatusOr<std::vector<const Variant*>> ChooseVariants(
    const Session& session) {
  const CommandLine& line = session.line;
  const Milestone& milestone = session.milestone;
  const size_t convolutions = line.network->Convolutions().size();
  const bool on_gpu = session.backend == Backend::kCuda;
  if (milestone.baseline && on_gpu) {
    return std::vector<const Variant*>(convolutions, &kCudnnVariant);
  }
  std::vector<std::string> names = line.variants;
  const absl::string_view usual =
      on_gpu ? milestone.gpu_variant : milestone.cpu_variant;
  if (names.empty() && !usual.empty()) names.emplace_back(usual);
  if (!names.empty()) names.resize(convolutions, names.front());
  std::vector<const Variant*> variants(convolutions);
  for (size_t i = 0; i < convolutions; ++i) {
    if (names.empty()) {
      // Asks for the images of a probable slice; at least one must fit.
      constexpr int64_t kUsualSlice = 1000;
      ASSIGN_OR_RETURN(
          variants[i],
          FastestVariant(
              session.backend,
              ConvolutionProblem(
                  *line.network, i,
                  std::min(line.size.value_or(kUsualSlice), kUsualSlice))));
    } else {
      ASSIGN_OR_RETURN(variants[i], FindVariant(session.backend, names[i]));
    }
  }
  return variants;
}

// Prints the time of the convolutions on the CPU, and of everything else.
std::string Shares(const RunRecord& record) {
  std::vector<int64_t> others = record.inference_ns;
  for (const ConvolutionRecord& convolution : record.convolutions) {
    for (size_t i = 0; i < others.size(); ++i) {
      others[i] -= convolution.op_time_ns[i];
    }
  }
  return absl::StrFormat(
      "convolutions by %s (%s) %.3f s; the other layers and enlarging %.3f s, "
      "reading %.3f s, preparing %.3f s",
      VariantNames(record.convolutions), CpuUse(record),
      OpTimeSum(record.convolutions) * 1e-9, Median(others) * 1e-9,
      record.load_ns * 1e-9, record.prepare_ns * 1e-9);
}

// Tells what the op times include besides the convolutions.
std::string FusedText(const RunRecord& record) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < record.convolutions.size(); ++i) {
    const std::string& fused = record.convolutions[i].fused;
    texts.push_back(absl::StrCat("convolution ", i + 1, ": ",
                                 fused.empty() ? "nothing" : fused));
  }
  return absl::StrCat("fused, and part of the op times: ",
                      absl::StrJoin(texts, "; "));
}

std::vector<std::string> NamesOf(const std::vector<const Variant*>& variants) {
  std::vector<std::string> names;
  names.reserve(variants.size());
  for (const Variant* variant : variants) names.emplace_back(variant->name);
  return names;
}

// Runs the network once and prints the course's lines.
absl::Status RunOnce(Session& session,
                     const std::vector<const Variant*>& variants) {
  ASSIGN_OR_RETURN(
      const InferenceResult result,
      RunNetwork(session, variants, session.line.repeat.value_or(1)));
  if (!result.note.empty()) session.Tell(result.note);
  RunRecord& record = session.record;
  record.convolutions =
      DescribeConvolutions(session, NamesOf(variants), result);
  for (const Variant* variant : variants) {
    VariantRecord& described = record.variants[variant->name];
    if (described.verification) continue;
    described = DescribeVariant(*variant);
    // After the run, whose first operation includes the loading of its code.
    ASSIGN_OR_RETURN(const double error,
                     VerifyLayers(session, *variant, variants));
    described.verification = Verified(*variant, variants, error);
  }
  record.repetitions_correct = CorrectAnswers(session, result);
  record.correct = record.repetitions_correct.back();
  int64_t tolerance = 0;
  for (const Variant* variant : variants) {
    tolerance = std::max(tolerance, MaxChangedAnswers(variant->accuracy));
  }
  session.counted = JudgeCounts(record.repetitions_correct, tolerance,
                                session.line.strict, record);
  record.slice = result.slice;
  record.device_memory_peak_bytes = result.device_memory_peak_bytes;
  record.inference_ns = result.inference_ns;
  record.prepare_ns = result.prepare_ns;
  session.Tell(session.backend == Backend::kCpu
                   ? Shares(record)
                   : absl::StrCat("convolutions by ",
                                  VariantNames(record.convolutions)));
  if (session.line.fuse) session.Tell(FusedText(record));
  session.TellFarSample(record.convolutions);
  if (session.milestone.baseline) {
    session.Print(EvalMetricLine(record.correct, session.size));
    return absl::OkStatus();
  }
  for (const std::vector<int64_t>& samples : result.op_time_ns) {
    session.Print(OpTimeLine(Median(samples)));
  }
  session.Print(
      CorrectnessLine(record.correct, session.size, session.line.model));
  return absl::OkStatus();
}

absl::Status ParseAndRun(const Milestone& milestone,
                         const std::vector<std::string>& command) {
  ASSIGN_OR_RETURN(
      const CommandLine line,
      ParseCommandLine(milestone, {command.begin() + 1, command.end()}));
  if (line.help || line.list) {
    std::fputs((line.help ? HelpText(milestone) : ListText(milestone)).c_str(),
               stdout);
    return absl::OkStatus();
  }
  if (line.check) return CheckInputs(milestone, line);

  ASSIGN_OR_RETURN(const auto session, OpenSession(milestone, line));
  const bool contributed = !session->kernels.empty();
  std::vector<const Variant*> variants;
  if (!contributed && !session->ladder) {
    ASSIGN_OR_RETURN(variants, ChooseVariants(*session));
  }
  const std::optional<RungReporter> reporter = RungReporter::FromEnvironment();
  if (reporter) {
    // The program that started this one says all of it.
    session->tell = [](const std::string&) {};
  }
  RETURN_IF_ERROR(LoadSession(*session, command));
  if (reporter) {
    RunRungs(*session, *reporter);
    return absl::OkStatus();
  }
  if (line.watch) return WatchKernels(*session);
  absl::Status measured;
  if (contributed) {
    measured = RunKernels(*session);
    if (!measured.ok() && !absl::IsFailedPrecondition(measured)) {
      return measured;
    }
  }
  if (session->ladder) {
    const absl::Status ladder = RunLadder(*session);
    if (measured.ok()) measured = ladder;
  } else if (!contributed) {
    RETURN_IF_ERROR(RunOnce(*session, variants));
  }
  // A wrong variant or kernel is a result too: it is printed and recorded, and
  // the program fails.
  RETURN_IF_ERROR(CloseSession(*session));
  if (!measured.ok()) return measured;
  // What is no failure is told; FinishProgram tells failures.
  if (session->counted.ok() && !session->record.count_error.empty()) {
    session->Tell(session->record.count_error);
  }
  return session->counted;
}

}  // namespace

int RunMilestone(absl::string_view name, int argc, char** argv) {
  return RunMain(name, [&] {
    return ParseAndRun(FindMilestone(name), {argv, argv + argc});
  });
}

}  // namespace convlab
