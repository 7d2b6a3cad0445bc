// The deliverables of a milestone, as parts of a document. Their content comes
// from records; missing parts are named, with the command that makes them.
#ifndef REPORTS_DELIVERABLES_DELIVERABLE_H_
#define REPORTS_DELIVERABLES_DELIVERABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "reports/comparison/ranking.h"
#include "reports/deliverables/timeline.h"
#include "reports/document/document.h"
#include "reports/records/records.h"

namespace convlab {

struct Deliverable {
  std::string title;
  std::vector<Block> blocks;
  bool complete = true;  // nothing is missing
};

// The sources of the deliverables.
struct Source {
  const Records* records = nullptr;
  std::string network;
  // The optimizations to show; all of the ladder if empty.
  std::vector<std::string> optimizations;
  std::vector<Participant> participants;  // of the ranking
  // The traces in the records, by path.
  std::map<std::string, std::vector<TimelineEvent>> timelines;
};

// The sizes at which a milestone is measured.
inline constexpr int64_t kSizes[] = {100, 1000, 10000};

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

// The timeline of a traced run; nullptr if its file is missing.
const std::vector<TimelineEvent>* FindTimeline(const Source& source,
                                               const RunRecord& record);

// The newest run of the ladder with the most images, or with `size`; nullptr if
// there is none in which a variant was timed.
const RunRecord* FindLadder(const Source& source,
                            std::optional<int64_t> size = std::nullopt);

// A variant's name for a table: a participant's kernel is marked.
Text VariantText(const std::string& name, const VariantRecord& variant);
// The same for the convolutions of a run, by the first of them if they differ.
Text VariantsText(const RunRecord& record);

// A variant's name and what it does and why; of a participant's kernel without
// a description, its interface.
Text DescribeVariant(const std::string& name, const VariantRecord& variant);

// A kernel's name for a table: without our own namespaces, shortened to
// `width`.
std::string KernelName(absl::string_view name, size_t width);

// The program and its arguments. Folders of the program and of absolute paths,
// which are the machine's, are removed.
std::string CommandText(const RunRecord& record);

// Milestone 1.
Deliverable KernelList(const Source& source);
Deliverable ApiList(const Source& source);
Deliverable KernelsAgainstApiCalls(const Source& source);
Deliverable BaselineRun(const Source& source, absl::string_view device);
// Milestone 2.
Deliverable ProgramTime(const Source& source);
Deliverable CpuOpTimes(const Source& source);
// Milestone 3.
Deliverable ThreeSizes(const Source& source);
Deliverable KernelInProfile(const Source& source);
// Milestone 4.
Deliverable Ladder(const Source& source);
std::vector<Deliverable> Optimizations(const Source& source);
// Final.
Deliverable FinalOpTimes(const Source& source);
Deliverable LibraryComparison(const Source& source);
// The error is RankParticipants'.
absl::StatusOr<Deliverable> RankingOfAll(const Source& source);
Deliverable References(const Source& source);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_DELIVERABLE_H_
