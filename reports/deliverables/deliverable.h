// What a milestone hands in, as parts of a document. Everything in them comes
// from records; what a record does not hold is named, with the command that
// makes it.
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

// What the deliverables are made from.
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

// `word` as a shell takes it.
std::string ShellWord(absl::string_view word);

// The command line that runs `milestone` with `arguments` and records it.
std::string RecordingCommand(const Source& source, absl::string_view milestone,
                             absl::string_view arguments,
                             absl::string_view record_name);

// The command line that traces a run of `milestone` on the GPU.
std::string TracingCommand(const Source& source, absl::string_view milestone);

// The command line that runs the ladder with `size` images and records it.
std::string LadderCommand(const Source& source, int64_t size);

// Says that something was not measured and which command measures it.
void AddMissing(Deliverable& deliverable, absl::string_view what,
                const std::string& command);

// The timeline of a traced run, nullptr if its file is not there.
const std::vector<TimelineEvent>* FindTimeline(const Source& source,
                                               const RunRecord& record);

// The newest run of the ladder with the most images, or with `size`; nullptr if
// none was made or nothing in it was timed.
const RunRecord* FindLadder(const Source& source,
                            std::optional<int64_t> size = std::nullopt);

// A kernel's name for a table: without our own namespaces, shortened to
// `width`.
std::string KernelName(absl::string_view name, size_t width);

// The program and its arguments. The program, and files that have a whole path,
// without their folders, which are the machine's.
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
