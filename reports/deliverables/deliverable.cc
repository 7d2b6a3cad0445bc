#include "reports/deliverables/deliverable.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/accuracy/accuracy.h"
#include "common/status/status.h"
#include "reports/importers/kernel_names.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

std::string FileName(absl::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace

std::vector<int64_t> MissingSizes(const std::set<int64_t>& sizes) {
  std::vector<int64_t> missing;
  if (sizes.size() >= std::size(kSizes)) return missing;
  for (const int64_t size : kSizes) {
    if (sizes.count(size) == 0) missing.push_back(size);
  }
  return missing;
}

std::string ShellWord(absl::string_view word) {
  const bool plain = !word.empty() && absl::c_all_of(word, [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("-_./=,:+@%", c);
  });
  if (plain) return std::string(word);
  // Bash's other quotes, within which nothing is raw that a terminal obeys.
  if (OneLine(word) != word) {
    return absl::StrCat(
        "$'",
        OneLine(absl::StrReplaceAll(word, {{"\\", "\\\\"}, {"'", "\\'"}})),
        "'");
  }
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

std::string RecordingCommand(const Source& source, absl::string_view milestone,
                             absl::string_view arguments,
                             absl::string_view record_name) {
  return absl::StrCat("bazel run //milestones:", milestone, " -- ",
                      source.network, " ", arguments,
                      arguments.empty() ? "" : " ", "--record ",
                      ShellWord(absl::StrCat(source.records->folder, "/",
                                             record_name, ".json")));
}

std::string TracingCommand(const Source& source, absl::string_view milestone) {
  const std::string name = absl::StrCat(milestone, "-", source.network);
  return RecordingCommand(
      source, milestone,
      absl::StrCat("--device gpu --profile ",
                   ShellWord(absl::StrCat(source.records->folder, "/", name,
                                          ".trace.json"))),
      name + "-traced");
}

std::string LadderCommand(const Source& source, int64_t size) {
  return RecordingCommand(source, "m4", absl::StrCat(size),
                          absl::StrCat("m4-", source.network, "-", size));
}

void AddMissing(Deliverable& deliverable, absl::string_view what,
                const std::string& command) {
  deliverable.complete = false;
  deliverable.blocks.push_back(
      Paragraph{Strong("Not measured:") + " " + std::string(what) +
                ". This command measures it: " + Code(command)});
}

Text AppendixNote(const Source& source, const std::string& before,
                  const std::string& text, const std::string& id) {
  if (!source.has_appendix) return {};
  return Text(before) + Link(text, "#" + id) + ".";
}

FoundTimeline FindTimeline(const Source& source, const RunRecord& record) {
  std::string name;
  for (size_t i = 0; i < record.command.size(); ++i) {
    absl::string_view path = record.command[i];
    if (absl::ConsumePrefix(&path, "--profile=")) {
      name = FileName(path);
    } else if (path == "--profile" && i + 1 < record.command.size()) {
      name = FileName(record.command[i + 1]);
    }
  }
  if (name.empty()) return {};
  // A folder may hold several traces of that name; the one beside the record
  // counts.
  std::string beside;
  for (const NamedRecord& run : source.records->runs) {
    if (&run.record != &record) continue;
    beside = run.path.substr(0, run.path.rfind('/') + 1) + name;
  }
  FoundTimeline found;
  for (const auto& [path, timeline] : source.timelines) {
    if (path == beside) return {&timeline, path};
    if (FileName(path) != name) continue;
    if (found.events != nullptr) return {};
    found = {&timeline, path};
  }
  return found;
}

const RunRecord* FindLadder(const Source& source, std::optional<int64_t> size) {
  const RunRecord* found = nullptr;
  Wanted wanted = {"m4", "gpu", size};
  wanted.ladder = true;
  for (const RunRecord* record : FindAll(*source.records, wanted)) {
    const bool timed = absl::c_any_of(record->ladder, [](const LadderRun& run) {
      return run.failure.empty();
    });
    if (timed) found = record;
  }
  return found;
}

std::set<int64_t> LadderSizes(const Source& source) {
  std::set<int64_t> sizes;
  Wanted wanted = {"m4", "gpu"};
  wanted.ladder = true;
  for (const RunRecord* record : FindAll(*source.records, wanted)) {
    if (FindLadder(source, record->size) != nullptr) sizes.insert(record->size);
  }
  return sizes;
}

Text VariantText(const std::string& name, const VariantRecord& variant) {
  if (!IsContributed(variant)) return Code(name);
  const VerificationRecord& found = *variant.verification;
  return Strong(name) +
         (IsRight(found) ? std::string(" (contributed)")
                         : absl::StrCat(" (contributed, ", found.outcome, ")"));
}

Text VariantsText(const RunRecord& record) {
  const std::string names = VariantNames(record.convolutions);
  if (record.convolutions.empty()) return Code(names);
  return VariantText(names, record.variants.at(record.convolutions[0].variant));
}

Text DescribeVariant(const std::string& name, const VariantRecord& variant) {
  const Text text = VariantText(name, variant) + ": ";
  if (IsContributed(variant) && variant.summary.empty()) {
    return text + variant.verification->kernel->kernel_interface + ".";
  }
  return text + variant.summary + " " + variant.reason;
}

Text CountText(int64_t correct, const std::optional<int64_t>& expected,
               const std::vector<std::string>& accuracy_classes) {
  if (!expected || *expected == correct) return Count(correct);
  int64_t tolerance = 0;
  for (const std::string& name : accuracy_classes) {
    const std::optional<AccuracyClass> found = FindAccuracyClass(name);
    if (found) tolerance = std::max(tolerance, MaxChangedAnswers(*found));
  }
  if (std::abs(correct - *expected) <= tolerance) {
    return absl::StrCat(Count(correct), " (fp32: ", Count(*expected), ")");
  }
  return Strong("✗ " + Count(correct)) + ", expected " + Count(*expected);
}

Text CountText(const RunRecord& record) {
  std::vector<std::string> classes;
  for (const auto& [name, variant] : record.variants) {
    classes.push_back(variant.accuracy_class);
  }
  return CountText(record.correct, ExpectedCorrect(record), classes);
}

std::string ProgramSeconds(const RunRecord& record) {
  return record.usage.elapsed_ns > 0
             ? absl::StrFormat("%.3f", record.usage.elapsed_ns * 1e-9)
             : "–";
}

std::string KernelName(absl::string_view name, size_t width) {
  absl::ConsumePrefix(&name, "void ");
  return ShortKernelName(
      absl::StrReplaceAll(ShortKernelName(name, name.size()),
                          {{"convlab::cuda::", ""}, {"convlab::", ""}}),
      width);
}

std::string CommandText(const RunRecord& record) {
  std::vector<std::string> words;
  bool names_variant = record.convolutions.empty() ||
                       record.milestone == "m1" || IsContributed(record);
  for (size_t i = 1; i < record.command.size(); ++i) {
    absl::string_view word = record.command[i];
    if (i == 1 && word == record.milestone) continue;  // convlab m1
    if (absl::StartsWith(word, "--record=")) continue;
    if (word == "--record") {
      ++i;
      continue;
    }
    names_variant |= word == "--variant" || word == "--kernel" ||
                     absl::StartsWith(word, "--variant=") ||
                     absl::StartsWith(word, "--kernel=");
    // The value of a flag of the form --name=value.
    const size_t value = absl::StartsWith(word, "--") ? word.find('=') + 1 : 0;
    words.push_back(ShellWord(
        absl::StartsWith(word.substr(value), "/")
            ? absl::StrCat(word.substr(0, value), FileName(word.substr(value)))
            : std::string(word)));
  }
  if (!names_variant) {
    std::vector<std::string> names;
    for (const ConvolutionRecord& convolution : record.convolutions) {
      names.push_back(convolution.variant);
    }
    const bool same = absl::c_all_of(
        names, [&](const std::string& name) { return name == names[0]; });
    words.push_back(absl::StrCat(
        "--variant ", ShellWord(same ? names[0] : absl::StrJoin(names, ","))));
  }
  return absl::StrCat("bazel run //milestones:", record.milestone, " -- ",
                      absl::StrJoin(words, " "));
}

}  // namespace convlab
