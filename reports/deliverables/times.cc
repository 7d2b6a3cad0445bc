// Milestones 2 and 3: times and correctness of the network with our
// convolutions.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/statistics.h"
#include "reports/deliverables/charts.h"
#include "reports/deliverables/deliverable.h"
#include "reports/deliverables/profile_tables.h"
#include "reports/importers/listing.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

size_t MostConvolutions(const std::vector<const RunRecord*>& records) {
  size_t most = 0;
  for (const RunRecord* record : records) {
    most = std::max(most, record->convolutions.size());
  }
  return most;
}

void AddOpTimeCells(const RunRecord& record, size_t convolutions,
                    std::vector<Text>& row) {
  for (size_t i = 0; i < convolutions; ++i) {
    row.push_back(i < record.convolutions.size()
                      ? Milliseconds(Median(record.convolutions[i].op_time_ns))
                      : "–");
  }
  row.push_back(Milliseconds(OpTimeSum(record.convolutions)));
}

void AddOpTimeColumns(size_t convolutions, Table& table) {
  for (size_t i = 0; i < convolutions; ++i) {
    table.columns.push_back({absl::StrCat("op time ", i + 1, ", ms")});
  }
  table.columns.push_back({"sum, ms"});
}

// Those on a participant's kernel first, each kind in its order.
std::vector<const RunRecord*> ContributedFirst(
    std::vector<const RunRecord*> runs) {
  absl::c_stable_partition(
      runs, [](const RunRecord* run) { return IsContributed(*run); });
  return runs;
}

std::vector<const RunRecord*> CpuRuns(const Source& source,
                                      Deliverable& deliverable) {
  std::vector<const RunRecord*> runs =
      ContributedFirst(FindAll(*source.records, {"m2", "cpu"}));
  if (runs.empty()) {
    AddMissing(deliverable,
               "there is no run of the network with a convolution on the CPU",
               RecordingCommand(source, "m2", "",
                                absl::StrCat("m2-", source.network)));
  }
  return runs;
}

// One run per size, the newest.
std::vector<const RunRecord*> NewestPerSize(
    const std::vector<const RunRecord*>& runs) {
  std::vector<const RunRecord*> newest;
  for (const RunRecord* run : runs) {
    if (!newest.empty() && newest.back()->size == run->size) {
      newest.back() = run;
    } else {
      newest.push_back(run);
    }
  }
  return newest;
}

// A curve for each convolution, of the runs with the same variants as the last
// of ours, and of those with the same kernel as the last contributed one, which
// come first. There is no curve of fewer than two sizes.
void AddSizeChart(const std::string& name,
                  const std::vector<const RunRecord*>& runs,
                  const std::string& caption, Deliverable& deliverable) {
  std::vector<TimeCurve> curves;
  std::string shown;
  for (const bool contributed : {true, false}) {
    std::vector<const RunRecord*> same;
    for (const RunRecord* run : runs) {
      if (IsContributed(*run) == contributed) same.push_back(run);
    }
    if (same.empty()) continue;
    const std::string variants = VariantNames(same.back()->convolutions);
    same.erase(std::remove_if(same.begin(), same.end(),
                              [&](const RunRecord* run) {
                                return VariantNames(run->convolutions) !=
                                       variants;
                              }),
               same.end());
    same = NewestPerSize(same);
    if (same.size() < 2) continue;
    absl::StrAppend(&shown, shown.empty() ? "" : ", ", variants);
    for (size_t i = 0; i < MostConvolutions(same); ++i) {
      TimeCurve& curve = curves.emplace_back();
      curve.title = absl::StrCat("convolution ", i + 1,
                                 contributed ? ", contributed" : "");
      for (const RunRecord* run : same) {
        if (i >= run->convolutions.size()) continue;
        curve.points.emplace_back(run->size,
                                  Median(run->convolutions[i].op_time_ns));
      }
    }
  }
  if (curves.empty()) return;
  deliverable.blocks.push_back(Figure{
      OpTimeChart(
          name,
          absl::StrCat(runs[0]->milestone, ", ", runs[0]->network, ", ", shown),
          curves),
      "Lines: the op time of each convolution against the number of images",
      caption});
}

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

}  // namespace

Deliverable ProgramTime(const Source& source) {
  Deliverable deliverable = {"Whole program execution time", {}};
  const std::vector<const RunRecord*> runs = CpuRuns(source, deliverable);
  if (runs.empty()) return deliverable;
  Table table = {{{"variant", false},
                  {"images"},
                  {"threads"},
                  {"program, s"},
                  {"user, s"},
                  {"system, s"},
                  {"memory, MB"},
                  {"correct", false}},
                 {}};
  for (const RunRecord* run : runs) {
    const ResourceUsage& usage = run->usage;
    table.rows.push_back(
        {VariantsText(*run), Count(run->size), Count(run->threads),
         usage.elapsed_ns > 0 ? absl::StrFormat("%.3f", usage.elapsed_ns * 1e-9)
                              : "–",
         absl::StrFormat("%.2f", usage.user_ns * 1e-9),
         absl::StrFormat("%.2f", usage.system_ns * 1e-9),
         usage.max_resident_bytes > 0
             ? absl::StrFormat("%.0f", usage.max_resident_bytes * 1e-6)
             : "–",
         absl::StrFormat("%s (%.2f %%)", Count(run->correct),
                         100.0 * run->correct / run->size)});
  }
  deliverable.blocks.push_back(std::move(table));
  // The last of the participant's runs, or of ours.
  const RunRecord* last = runs[0];
  for (const RunRecord* run : runs) {
    if (IsContributed(*run) == IsContributed(*last)) last = run;
  }
  AddRun(*last, deliverable);
  return deliverable;
}

Deliverable CpuOpTimes(const Source& source) {
  Deliverable deliverable = {"Op times on the CPU", {}};
  const std::vector<const RunRecord*> runs = CpuRuns(source, deliverable);
  if (runs.empty()) return deliverable;
  deliverable.blocks.push_back(Paragraph{
      "One op time per convolution of the network, the median of the run's "
      "repetitions."});
  const size_t convolutions = MostConvolutions(runs);
  Table table = {{{"variant", false}, {"images"}, {"repetitions"}}, {}};
  AddOpTimeColumns(convolutions, table);
  table.columns.push_back({"GFLOP/s"});
  for (const RunRecord* run : runs) {
    std::vector<Text>& row = table.rows.emplace_back();
    row = {VariantsText(*run), Count(run->size),
           Count(run->convolutions[0].op_time_ns.size())};
    AddOpTimeCells(*run, convolutions, row);
    double flops = 0;
    for (const ConvolutionRecord& convolution : run->convolutions) {
      flops += static_cast<double>(convolution.flops);
    }
    row.push_back(
        absl::StrFormat("%.1f", flops / OpTimeSum(run->convolutions)));
  }
  deliverable.blocks.push_back(std::move(table));
  std::map<std::string, VariantRecord> variants;
  for (const RunRecord* run : runs) {
    variants.insert(run->variants.begin(), run->variants.end());
  }
  List what;
  for (const auto& [name, variant] : variants) {
    what.items.push_back(DescribeVariant(name, variant));
  }
  deliverable.blocks.push_back(std::move(what));
  AddSizeChart("m2-op-times", runs,
               "Op times on the CPU against the number of images.",
               deliverable);
  return deliverable;
}

Deliverable ThreeSizes(const Source& source) {
  Deliverable deliverable = {"Correctness and timing with three data set sizes",
                             {}};
  std::vector<const RunRecord*> runs;
  for (const int64_t size : kSizes) {
    bool any = false;
    for (const bool contributed : {true, false}) {
      const RunRecord* run = Find(
          *source.records, {"m3", "gpu", size, /*traced=*/false, contributed});
      if (run == nullptr) continue;
      runs.push_back(run);
      any = true;
    }
    if (!any) {
      AddMissing(
          deliverable,
          absl::StrCat("there is no run with ", Plural(size, "image")),
          RecordingCommand(source, "m3", absl::StrCat(size),
                           absl::StrCat("m3-", source.network, "-", size)));
    }
  }
  if (runs.empty()) return deliverable;
  runs = ContributedFirst(std::move(runs));
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
        Count(run->correct), expected ? Count(*expected) : "–"};
    AddOpTimeCells(*run, convolutions, row);
    row.push_back(run->usage.elapsed_ns > 0
                      ? absl::StrFormat("%.3f", run->usage.elapsed_ns * 1e-9)
                      : "–");
  }
  deliverable.blocks.push_back(std::move(table));
  deliverable.blocks.push_back(Paragraph{
      !all_known
          ? "The weight file does not say how many answers are right with it."
      : all_as_expected
          ? "Expected is what the weight file says; every run has that number "
            "of correct answers."
          : "Expected is what the weight file says. Not every run has it: the "
            "convolution is wrong, or rounds differently."});
  AddSizeChart("m3-op-times", runs,
               "Op times on the GPU against the number of images, from the "
               "table above.",
               deliverable);
  for (const RunRecord* run : runs) AddRun(*run, deliverable);
  return deliverable;
}

Deliverable KernelInProfile(const Source& source) {
  Deliverable deliverable = {
      "The profile, with the calls of the convolution's kernel", {}};
  const RunRecord* record =
      Find(*source.records, {"m3", "gpu", std::nullopt, /*traced=*/true});
  if (record == nullptr) {
    AddMissing(deliverable, "there is no traced run of this milestone",
               TracingCommand(source, "m3"));
    return deliverable;
  }
  const ProfileSection& activities = record->profile->gpu_activities;
  AddShareList(activities, *record, "kernels, copies and memsets", deliverable);
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
  AddShareChart("m3-gpu-time", *record, deliverable);
  AddTimeline("m3-timeline", source, *record, deliverable);
  return deliverable;
}

}  // namespace convlab
