// Milestone 3: times and correctness of the network with our convolution on the
// GPU, and its kernel in the profile.
#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/statistics.h"
#include "reports/deliverables/charts.h"
#include "reports/deliverables/deliverable.h"
#include "reports/deliverables/profile_tables.h"
#include "reports/deliverables/time_tables.h"
#include "reports/importers/listing.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

// A variant's name in the names of its kernels: "Im2colShared" for
// "im2col_shared".
std::string KernelPrefix(absl::string_view variant) {
  std::string name;
  bool upper = true;
  for (const char c : variant) {
    if (c == '_') {
      upper = true;
    } else {
      name += upper ? absl::ascii_toupper(c) : c;
      upper = false;
    }
  }
  return name;
}

const RunRecord* TracedRun(const Source& source) {
  return Find(*source.records, {"m3", "gpu", std::nullopt, /*traced=*/true});
}

Deliverable ThreeSizes(const Source& source) {
  Deliverable deliverable = {"Correctness and timing with three data set sizes",
                             "three-sizes"};
  const std::vector<const RunRecord*> runs = NewestRuns(source, "m3", "gpu");
  std::set<int64_t> sizes;
  for (const RunRecord* run : runs) sizes.insert(run->size);
  for (const int64_t size : MissingSizes(sizes)) {
    AddMissing(
        deliverable,
        absl::StrCat("there is no run with ", Plural(size, "image")),
        RecordingCommand(source, "m3", absl::StrCat(size),
                         absl::StrCat("m3-", source.network, "-", size)));
  }
  if (runs.empty()) return deliverable;
  const size_t convolutions = MostConvolutions(runs);
  Table table = {{{"images"},
                  {"variant", false},
                  {"correctness"},
                  {"correct"},
                  {"expected"}},
                 {}};
  AddOpTimeColumns(convolutions, table);
  table.columns.push_back({"program, s"});
  bool all_as_expected = true, all_known = true;
  for (const RunRecord* run : runs) {
    const std::optional<int64_t> expected = ExpectedCorrect(*run);
    all_known &= expected.has_value();
    all_as_expected &= !expected || *expected == run->correct;
    std::vector<Text>& row = table.rows.emplace_back();
    row = {
        Count(run->size), VariantsText(*run),
        absl::StrFormat("%.4g", static_cast<double>(run->correct) / run->size),
        CountText(*run), expected ? Count(*expected) : "–"};
    AddOpTimeCells(*run, convolutions, row);
    row.push_back(ProgramSeconds(*run));
  }
  deliverable.blocks.push_back(std::move(table));
  deliverable.blocks.push_back(Paragraph{
      !all_known
          ? "The weight file does not say how many answers are right with it."
      : all_as_expected
          ? "Expected is what the weight file says; every run has that number "
            "of correct answers."
          : "Expected is what the weight file says. Not every run has it: the "
            "convolution is wrong, or rounds differently: the rows are "
            "marked."});
  for (const RunRecord* run : FailedRuns(source, "m3")) {
    deliverable.blocks.push_back(Paragraph{FailureText(*run)});
  }
  AddSizeChart("m3-op-times", runs,
               "Op times on the GPU against the number of images, from the "
               "table above.",
               deliverable);
  return deliverable;
}

Deliverable KernelInProfile(const Source& source) {
  Deliverable deliverable = {
      "The profile, with the calls of the convolution's kernel", "profile"};
  const RunRecord* record = TracedRun(source);
  if (record == nullptr) {
    AddMissing(deliverable, "there is no traced run of this milestone",
               TracingCommand(source, "m3"));
    return deliverable;
  }
  const ProfileSection& activities = record->profile->gpu_activities;
  AddShareList(source, activities, *record, "kernels, copies and memsets",
               deliverable);
  const size_t convolutions = record->convolutions.size();
  const bool contributed = IsContributed(*record);
  bool found = false;
  for (const ProfileEntry& entry : activities.entries) {
    // Kernels outside our namespace are the participant's, or of a library that
    // the participant's calls.
    const bool is_convolution =
        contributed
            ? !absl::StartsWith(entry.name, "[") &&
                  !absl::StrContains(entry.name, "convlab::")
            : convolutions > 0 &&
                  absl::StrContains(
                      entry.name,
                      KernelPrefix(record->convolutions[0].variant) + "Kernel");
    if (!is_convolution) continue;
    found = true;
    Text text = Text("The convolution's kernel ") +
                Code(KernelName(entry.name, 40)) + " is in the profile";
    if (entry.calls) {
      text += absl::StrCat(" with ", Plural(*entry.calls, "call"));
      if (*entry.calls == static_cast<int64_t>(convolutions)) {
        text += ", one for each convolution of the network";
      }
    }
    if (entry.min_ns && entry.max_ns) {
      text +=
          absl::StrCat("; the shortest took ",
                       FormatNanoseconds(static_cast<double>(*entry.min_ns)),
                       ", the longest ",
                       FormatNanoseconds(static_cast<double>(*entry.max_ns)));
    }
    text += ".";
    deliverable.blocks.push_back(Paragraph{std::move(text)});
  }
  if (!found && convolutions > 0) {
    deliverable.complete = false;
    deliverable.blocks.push_back(Paragraph{
        Text("No kernel in the profile has the name of the variant ") +
        Code(record->convolutions[0].variant) + "."});
  }
  AddTimeline("m3-timeline", source, *record, deliverable);
  return deliverable;
}

}  // namespace

Parts Milestone3(const Source& source) {
  Parts parts;
  parts.asked =
      "The network with a first convolution of our own on the GPU: that it is "
      "right and how long it takes with 100, 1,000 and 10,000 images, and the "
      "calls of its kernel in the profile.";
  parts.sections = {ThreeSizes(source), KernelInProfile(source)};
  const std::vector<const RunRecord*> runs = NewestRuns(source, "m3", "gpu");
  const std::vector<const RunRecord*> reached = ReachedRuns(runs);
  for (const RunRecord* run : reached) {
    parts.reached.push_back(ReachedText(*run));
  }
  if (!reached.empty()) parts.picture = {TimePicture("m3-time", *reached[0])};
  // The verdict on a participant's kernel is the same for every size.
  std::vector<const RunRecord*> shown = FailedRuns(source, "m3");
  for (const RunRecord* run : shown) {
    parts.reached.push_back(FailureText(*run));
  }
  for (const RunRecord* run : runs) {
    if (!IsContributed(*run) || absl::c_linear_search(reached, run)) {
      shown.push_back(run);
    }
  }
  parts.appendix = {Outputs(shown), NamesInFull(TracedRun(source)),
                    LongestEvents(source, TracedRun(source))};
  return parts;
}

}  // namespace convlab
