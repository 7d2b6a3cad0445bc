#include "milestones/kernel_record.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/accuracy/accuracy.h"
#include "common/status/status.h"
#include "kernels/convolution/fastest.h"
#include "kernels/judge/trials.h"
#include "milestones/counts.h"

namespace convlab {

void AddToRecord(Session& session, const KernelRun& run) {
  RunRecord& record = session.record;
  const KernelSource& source = run.compiled.source;
  VariantRecord& variant = record.variants[source.name];
  variant.backend = std::string(Name(session.backend));
  variant.accuracy_class = std::string(Name(run.verdict.accuracy));
  variant.summary = absl::StrCat(
      "A contributed kernel: ", Name(source.kernel_interface), ".");
  VerificationRecord& verification = variant.verification.emplace();
  verification.outcome = std::string(Name(run.verdict.outcome));
  verification.reason = run.verdict.reason;
  verification.relative_error = run.verdict.relative_error;
  verification.accuracy_class = variant.accuracy_class;
  verification.problems_tried = run.verdict.problems_tried;
  verification.problems_right = run.verdict.problems_right;
  verification.judge_version = kJudgeVersion;
  verification.quick = run.verdict.quick;
  verification.protection = run.verdict.protection;
  verification.op_time_counts = run.verdict.op_time_counts;
  verification.op_time_note = run.verdict.op_time_note;
  verification.kernel = {source.name,
                         std::string(Name(source.kernel_interface)),
                         source.digest, run.bound};
  LadderRun row;
  row.variant = source.name;
  if (!IsRight(run.verdict)) {
    row.failure = std::string(Name(run.verdict.outcome));
    if (!run.verdict.reason.empty()) {
      absl::StrAppend(&row.failure, ": ", run.verdict.reason.front());
    }
  }
  row.relative_error = run.verdict.relative_error;
  if (run.result) {
    row.convolutions = DescribeConvolutions(
        session,
        std::vector<std::string>(run.result->op_time_ns.size(), source.name),
        *run.result);
    for (size_t i = 0; i < row.convolutions.size(); ++i) {
      row.convolutions[i].whole_time_ns = run.whole_ns[i];
    }
    row.correct = run.correct.back();
    row.repetitions_correct = run.correct;
    row.inference_ns = run.result->inference_ns;
    row.slice = run.result->slice;
    row.device_memory_peak_bytes = run.device_bytes;
  }
  session.TellFarSample(row.convolutions);
  if (session.ladder || session.kernels.size() > 1) {
    record.ladder.push_back(std::move(row));
    return;
  }
  record.convolutions = std::move(row.convolutions);
  record.correct = row.correct;
  record.repetitions_correct = std::move(row.repetitions_correct);
  record.inference_ns = std::move(row.inference_ns);
  record.slice = row.slice;
  record.device_memory_peak_bytes = row.device_memory_peak_bytes;
  if (run.result) record.prepare_ns = run.result->prepare_ns;
}

absl::Status RecordExpected(Session& session) {
  if (ExpectedCorrect(session.record)) return absl::OkStatus();
  std::vector<const Variant*> variants;
  for (const Problem& layer : LayersOf(*session.line.network, session.size)) {
    ASSIGN_OR_RETURN(const Variant* variant,
                     FastestVariant(session.backend, layer));
    variants.push_back(variant);
  }
  ASSIGN_OR_RETURN(const InferenceResult result,
                   RunNetwork(session, variants, /*repeat=*/1));
  session.record.expected_correct = CorrectAnswers(session, result).back();
  return absl::OkStatus();
}

void JudgeKernelCounts(Session& session) {
  RunRecord& record = session.record;
  const auto judge = [&](const std::string& name,
                         const std::vector<int64_t>& counts) {
    const VariantRecord& variant = record.variants[name];
    if (!IsContributed(variant)) return;
    const int64_t tolerance =
        MaxChangedAnswers(FindAccuracyClass(variant.accuracy_class)
                              .value_or(AccuracyClass::kFp32));
    session.counted.Update(Annotate(
        JudgeCounts(counts, tolerance, session.line.strict, record), name));
  };
  for (const LadderRun& run : record.ladder) {
    judge(run.variant, run.repetitions_correct);
  }
  if (record.ladder.empty() && !record.convolutions.empty()) {
    judge(record.convolutions.front().variant, record.repetitions_correct);
  }
}

}  // namespace convlab
