#include "reports/deliverables/profile_tables.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "reports/deliverables/charts.h"
#include "reports/importers/listing.h"
#include "reports/importers/shares.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

constexpr double kThreshold = 90;
constexpr size_t kNameWidth = 58;
constexpr char kNamesId[] = "names", kEventsId[] = "events";

template <typename T>
std::string Time(const std::optional<T>& ns) {
  return ns ? FormatNanoseconds(static_cast<double>(*ns)) : "–";
}

// "11.71 s user, 0.10 s system".
std::string CpuTime(const RunRecord& record) {
  return absl::StrFormat("%.2f s user, %.2f s system",
                         record.usage.user_ns * 1e-9,
                         record.usage.system_ns * 1e-9);
}

}  // namespace

void AddShareList(const Source& source, const ProfileSection& section,
                  const RunRecord& record, const std::string& what,
                  Deliverable& deliverable) {
  std::vector<Block>& blocks = deliverable.blocks;
  if (section.entries.empty()) {
    deliverable.complete = false;
    blocks.push_back(Paragraph{absl::StrCat("The profile holds no ", what,
                                            section.missing.empty() ? "" : ": ",
                                            section.missing, ".")});
    return;
  }
  const ShareList list = LargestShares(section, kThreshold);
  if (list.shares.empty()) {
    deliverable.complete = false;
    blocks.push_back(
        Paragraph{absl::StrCat("The profile holds no times of ", what, ".")});
    return;
  }
  blocks.push_back(Paragraph{
      absl::StrCat(list.shares.size(), " of ", list.entries, " ", what,
                   " together take ",
                   list.exceeds ? "more than 90 %" : "as much as is listed",
                   " of ", FormatNanoseconds(WholeTime(section.entries)),
                   ". Traced by ", record.profile->tool,
                   record.profile->version.empty() ? "" : " ",
                   record.profile->version, ": ") +
      Code(CommandText(record)) + "."});
  Table table = {{{"name", false},
                  {"share, %"},
                  {"sum, %"},
                  {"total"},
                  {"calls"},
                  {"average"},
                  {"longest"}},
                 {}};
  bool is_cut = false;
  for (const Share& share : list.shares) {
    const ProfileEntry& entry = share.entry;
    const std::string name = KernelName(entry.name, kNameWidth);
    is_cut |= name != KernelName(entry.name, entry.name.size() + 8);
    table.rows.push_back(
        {Code(name), absl::StrFormat("%.2f", 100 * share.share),
         absl::StrFormat("%.2f", 100 * share.cumulative), Time(entry.total_ns),
         entry.calls ? Count(*entry.calls) : "–", Time(entry.average_ns),
         Time(entry.max_ns)});
  }
  if (list.entries > list.shares.size()) {
    const double listed = list.shares.back().cumulative;
    table.rows.push_back(
        {OthersOf(list), absl::StrFormat("%.2f", 100 * (list.listed - listed)),
         absl::StrFormat("%.2f", 100 * list.listed), "–", "–", "–", "–"});
  }
  blocks.push_back(std::move(table));
  if (is_cut && source.has_appendix) {
    blocks.push_back(Paragraph{
        AppendixNote(source, "Long names are cut; they stand in full in the ",
                     "appendix", kNamesId)});
  }
  for (const std::string& note :
       ShareNotes(section, list, record.profile->tool, kThreshold)) {
    blocks.push_back(Paragraph{absl::StrCat("Note: ", note, ".")});
  }
}

std::vector<Block> SharePicture(const std::string& name,
                                const RunRecord& record) {
  ShareList list = LargestShares(record.profile->gpu_activities, kThreshold);
  if (list.shares.empty()) return {};
  for (Share& share : list.shares) {
    share.entry.name = KernelName(share.entry.name, kNameWidth);
  }
  return {Figure{ShareChart(name,
                            absl::StrCat("GPU time of ", record.milestone, ", ",
                                         record.network, ", ",
                                         Plural(record.size, "image")),
                            list),
                 "Bars: the share of the GPU's time that each kernel takes",
                 "What takes the GPU's time."}};
}

void AddTimeline(const std::string& name, const Source& source,
                 const RunRecord& record, Deliverable& deliverable) {
  const FoundTimeline found = FindTimeline(source, record);
  if (found.events == nullptr) {
    AddMissing(deliverable,
               "the trace of this run, from which its timeline is drawn, is "
               "not among the records",
               TracingCommand(source, record.milestone));
    return;
  }
  namespace fs = std::filesystem;
  const std::string file = fs::path(found.path).filename().string();
  std::error_code error;
  const std::string path =
      fs::absolute(found.path, error)
          .lexically_normal()
          .lexically_proximate(
              fs::absolute(source.out, error).lexically_normal())
          .string();
  deliverable.blocks.push_back(Figure{
      TimelineChart(
          name,
          absl::StrCat("One run of ", record.milestone, ", ", record.network,
                       ", ", Plural(record.size, "image")),
          *found.events),
      "Timeline: when API calls, kernels and copies ran",
      Text("The host's API calls, and the GPU's kernels and copies. The trace "
           "for ui.perfetto.dev: ") +
          (source.out.empty() || error ? Code(file) : Link(file, path)) + ". " +
          AppendixNote(source, "The ", "longest events", kEventsId)});
}

Figure TimePicture(const std::string& name, const RunRecord& record) {
  return {MakeChart(name, TimeParts(record)),
          "One bar: the parts of the whole program's time",
          Text("Where the time of ") + Code(CommandText(record)) +
              " goes, of " + ProgramSeconds(record) + " s."};
}

void AddRun(const RunRecord& record, Deliverable& deliverable) {
  deliverable.blocks.push_back(
      Paragraph{Code(CommandText(record)) + " on " + DeviceOf(record) + ":"});
  if (record.output.empty()) {
    deliverable.complete = false;
    deliverable.blocks.push_back(
        Paragraph{"The record does not hold what the run printed."});
  } else {
    deliverable.blocks.push_back(Verbatim{record.output});
  }
  Text text;
  if (record.usage.elapsed_ns > 0) {
    text = Text("Run time of the whole program: ") +
           Strong(ProgramSeconds(record) + " s") + " (" + CpuTime(record) +
           "). ";
  }
  deliverable.blocks.push_back(Paragraph{text + CountText(record) + " of " +
                                         Plural(record.size, "image") +
                                         " right."});
}

Deliverable Outputs(const std::vector<const RunRecord*>& runs) {
  Deliverable part = {"What the runs printed", "outputs"};
  for (const RunRecord* run : runs) AddRun(*run, part);
  return part;
}

Deliverable NamesInFull(const RunRecord* traced) {
  Deliverable part = {"Names in full", kNamesId};
  if (traced == nullptr || !traced->profile) return part;
  List list;
  for (const ProfileSection* section :
       {&traced->profile->gpu_activities, &traced->profile->api_calls}) {
    for (const Share& share : LargestShares(*section, kThreshold).shares) {
      const std::string full =
          KernelName(share.entry.name, share.entry.name.size() + 8);
      if (full == KernelName(share.entry.name, kNameWidth)) continue;
      list.items.push_back(Code(full));
    }
  }
  if (!list.items.empty()) part.blocks.emplace_back(std::move(list));
  return part;
}

Deliverable LongestEvents(const Source& source, const RunRecord* traced) {
  Deliverable part = {"The longest events of the timeline", kEventsId};
  const std::vector<TimelineEvent>* events =
      traced == nullptr ? nullptr : FindTimeline(source, *traced).events;
  if (events == nullptr) return part;
  Table table = {
      {{"row", false}, {"name", false}, {"from, ms"}, {"to, ms"}, {"ms"}}, {}};
  for (const auto& [row, title] :
       {std::pair(TimelineEvent::Row::kApi, "API call"),
        std::pair(TimelineEvent::Row::kKernel, "kernel"),
        std::pair(TimelineEvent::Row::kCopy, "copy")}) {
    std::vector<TimelineEvent> longest;
    for (const TimelineEvent& event : *events) {
      if (event.row == row) longest.push_back(event);
    }
    std::stable_sort(longest.begin(), longest.end(),
                     [](const TimelineEvent& a, const TimelineEvent& b) {
                       return a.end_ms - a.start_ms > b.end_ms - b.start_ms;
                     });
    longest.resize(std::min<size_t>(longest.size(), 3));
    for (const TimelineEvent& event : longest) {
      table.rows.push_back(
          {title, Code(KernelName(event.name, 60)),
           absl::StrFormat("%.3f", event.start_ms),
           absl::StrFormat("%.3f", event.end_ms),
           absl::StrFormat("%.3f", event.end_ms - event.start_ms)});
    }
  }
  part.blocks.emplace_back(std::move(table));
  return part;
}

}  // namespace convlab
