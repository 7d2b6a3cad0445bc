// The deliverables of a milestone, as parts of a document. Their content comes
// from records; missing parts are named, with the command that makes them.
#ifndef REPORTS_DELIVERABLES_DELIVERABLE_H_
#define REPORTS_DELIVERABLES_DELIVERABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "reports/comparison/ranking.h"
#include "reports/deliverables/timeline.h"
#include "reports/document/document.h"
#include "reports/records/records.h"

namespace convlab {

// A section of the submission or of its appendix.
struct Deliverable {
  std::string title;
  // Of links to it; letters and dashes.
  std::string id;
  std::vector<Block> blocks = {};
  bool complete = true;  // nothing is missing
};

// What a milestone hands in.
struct Parts {
  std::string asked;           // what the course asks for, as a sentence
  std::vector<Text> reached;   // what was reached, a sentence each
  std::vector<Block> picture;  // the summary's chart
  std::vector<Deliverable> sections;
  std::vector<Deliverable> appendix;
};

// The sources of the deliverables.
struct Source {
  const Records* records = nullptr;
  std::string network;
  // The optimizations to discuss, in this order; if empty, ChosenRungs takes
  // some.
  std::vector<std::string> optimizations;
  // The variant that all optimizations are compared with; if empty, each is
  // compared with the one before.
  std::string base;
  std::vector<Participant> participants;  // of the ranking
  // The traces in the records, by path.
  std::map<std::string, std::vector<TimelineEvent>> timelines;
  bool has_appendix = true;
  std::string out;  // the document's folder, from which links start
};

// The sizes at which the course measures a milestone.
inline constexpr int64_t kSizes[] = {100, 1000, 10000};

// Those of them that lack a run where the milestone was measured at `sizes`;
// none if these are three of the user's own.
std::vector<int64_t> MissingSizes(const std::set<int64_t>& sizes);

// Quotes `word` for a shell.
std::string ShellWord(absl::string_view word);

// The command line that runs `milestone` with `arguments` and records it.
std::string RecordingCommand(const Source& source, absl::string_view milestone,
                             absl::string_view arguments,
                             absl::string_view record_name);

// The command line that traces a run of `milestone` on the GPU.
std::string TracingCommand(const Source& source, absl::string_view milestone);

// The command line that runs the ladder with `size` images and records it.
std::string LadderCommand(const Source& source, int64_t size);

// A sentence that says that something was not measured and which command
// measures it.
void AddMissing(Deliverable& deliverable, absl::string_view what,
                const std::string& command);

// A sentence that ends with a link to a part of the appendix; empty if there is
// no appendix.
Text AppendixNote(const Source& source, const std::string& before,
                  const std::string& text, const std::string& id);

// The timeline of a traced run, and its file's path; nullptr if it is missing.
struct FoundTimeline {
  const std::vector<TimelineEvent>* events = nullptr;
  std::string path;
};
FoundTimeline FindTimeline(const Source& source, const RunRecord& record);

// The newest run of the ladder with the most images, or with `size`; nullptr if
// there is none in which a variant was timed.
const RunRecord* FindLadder(const Source& source,
                            std::optional<int64_t> size = std::nullopt);

// The numbers of images of all runs of the ladder.
std::set<int64_t> LadderSizes(const Source& source);

// A variant's name for a table: a participant's kernel is marked.
Text VariantText(const std::string& name, const VariantRecord& variant);
// The same for the convolutions of a run, by the first of them if they differ.
Text VariantsText(const RunRecord& record);

// A variant's name and what it does and why; of a participant's kernel without
// a description, its interface.
Text DescribeVariant(const std::string& name, const VariantRecord& variant);

// A number of correct answers, marked and with the expected one beside it where
// it is another one than that by more than classes that round differently may
// change.
Text CountText(int64_t correct, const std::optional<int64_t>& expected,
               const std::vector<std::string>& accuracy_classes);
// The same of a run, by the classes of its variants.
Text CountText(const RunRecord& record);

// The time of the whole program, in seconds.
std::string ProgramSeconds(const RunRecord& record);

// A kernel's name for a table: without our own namespaces, shortened to
// `width`.
std::string KernelName(absl::string_view name, size_t width);

// The command that repeats a run: it names the variants that ran, and not the
// record. Folders of absolute paths, which are the machine's, are removed.
std::string CommandText(const RunRecord& record);

// What each milestone hands in. The error is RankParticipants'.
Parts Milestone1(const Source& source);
Parts Milestone2(const Source& source);
Parts Milestone3(const Source& source);
Parts Milestone4(const Source& source);
absl::StatusOr<Parts> FinalMilestone(const Source& source);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_DELIVERABLE_H_
