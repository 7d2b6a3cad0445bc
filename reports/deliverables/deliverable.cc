#include "reports/deliverables/deliverable.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "reports/profiles/listing.h"

namespace convlab {
namespace {

std::string FileName(absl::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace

std::string RecordingCommand(const Source& source, absl::string_view milestone,
                             absl::string_view arguments,
                             absl::string_view record_name) {
  return absl::StrCat("bazel run //milestones:", milestone, " -- ",
                      source.network, " ", arguments,
                      arguments.empty() ? "" : " ", "--record ",
                      source.records->folder, "/", record_name, ".json");
}

void AddMissing(Deliverable& deliverable, absl::string_view what,
                const std::string& command) {
  deliverable.complete = false;
  deliverable.blocks.push_back(
      Paragraph{Strong("Not measured:") + " " + std::string(what) +
                ". This command does it: " + Code(command)});
}

const std::vector<TimelineEvent>* FindTimeline(const Source& source,
                                               const RunRecord& record) {
  for (size_t i = 0; i < record.command.size(); ++i) {
    absl::string_view path = record.command[i];
    if (!absl::ConsumePrefix(&path, "--profile=")) {
      if (path != "--profile" || i + 1 == record.command.size()) continue;
      path = record.command[i + 1];
    }
    const auto found = source.timelines.find(FileName(path));
    if (found != source.timelines.end()) return &found->second;
  }
  return nullptr;
}

const RunRecord* FindLadder(const Source& source, std::optional<int64_t> size) {
  const RunRecord* found = nullptr;
  for (const RunRecord* record :
       FindAll(*source.records, {"m4", "gpu", size})) {
    // A run of one variant (--variant) is none of the ladder.
    const bool timed = absl::c_any_of(record->ladder, [](const LadderRun& run) {
      return run.failure.empty();
    });
    if (timed) found = record;
  }
  return found;
}

std::string KernelName(absl::string_view name, size_t width) {
  absl::ConsumePrefix(&name, "void ");
  return ShortKernelName(
      absl::StrReplaceAll(ShortKernelName(name, name.size()),
                          {{"convlab::cuda::", ""}, {"convlab::", ""}}),
      width);
}

std::string CommandText(const RunRecord& record) {
  std::vector<std::string> words = record.command;
  if (!words.empty()) words[0] = FileName(words[0]);
  return absl::StrJoin(words, " ");
}

}  // namespace convlab
