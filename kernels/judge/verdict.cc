#include "kernels/judge/verdict.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/flags/flags.h"
#include "common/status/status.h"
#include "kernels/cuda/device.h"
#include "kernels/judge/judging.h"

namespace convlab {
namespace {

// Whether files of this interface may do work before and after the op.
bool HasProlog(KernelInterface kernel_interface) {
  return kernel_interface == KernelInterface::kMiniDnnGpu ||
         kernel_interface == KernelInterface::kLibrary;
}

// Adds `text` in lines of at most 80 columns, each behind `indent` spaces.
void AddWrapped(const std::string& text, size_t indent, std::string& out) {
  absl::StrAppend(&out, std::string(indent, ' '),
                  WrapText(text, indent, indent), "\n");
}

}  // namespace

absl::string_view Name(VerdictOutcome outcome) {
  switch (outcome) {
    case VerdictOutcome::kRight:
      return "right";
    case VerdictOutcome::kRestricted:
      return "restricted";
    case VerdictOutcome::kWrong:
      return "wrong";
    case VerdictOutcome::kRefused:
      return "refused";
    case VerdictOutcome::kCrashed:
      return "crashed";
  }
  return "";
}

absl::StatusOr<Verdict> Judge(const CompiledKernel& kernel,
                              const JudgeOptions& options, Workers& workers,
                              std::unique_ptr<KernelProcess> process) {
  JudgedKernel judged;
  judged.start = [&](const ProcessOptions& start)
      -> absl::StatusOr<std::unique_ptr<KernelProcess>> {
    if (process != nullptr && !start.trace) return std::move(process);
    return KernelProcess::Start(kernel.library, start);
  };
  judged.has_prolog = HasProlog(kernel.source.kernel_interface);
  if (options.process.gpu) {
    const cuda::CurrentDevice device(options.process.device);
    RETURN_IF_ERROR(device.status());
    ASSIGN_OR_RETURN(const cuda::DeviceFacts facts, cuda::FindDevice());
    judged.limits = LimitsOf(facts);
  }
  return JudgeKernel(judged, options, workers);
}

std::string ToString(const Verdict& verdict) {
  std::string out;
  std::string first =
      absl::StrCat(Name(verdict.outcome), ": ", verdict.problems_right, " of ",
                   verdict.problems_tried, " trials right");
  if (verdict.quick) absl::StrAppend(&first, " on the network's own layers");
  if (IsRight(verdict)) {
    absl::StrAppendFormat(&first, ", class %s, relative error %.2g",
                          Name(verdict.accuracy), verdict.relative_error);
  }
  AddWrapped(first, 0, out);
  for (const std::string& line : verdict.reason) AddWrapped(line, 2, out);
  if (!verdict.op_time_note.empty()) {
    AddWrapped(
        absl::StrCat(verdict.op_time_counts
                         ? "op time: "
                         : "op time is no result, the whole operation counts: ",
                     verdict.op_time_note),
        2, out);
  }
  for (const std::string& note : verdict.notes) {
    AddWrapped(absl::StrCat("note: ", note), 2, out);
  }
  AddWrapped(absl::StrFormat("seed %u%s%s", verdict.seed,
                             verdict.protection.empty() ? "" : "; process: ",
                             verdict.protection),
             2, out);
  return out;
}

}  // namespace convlab
