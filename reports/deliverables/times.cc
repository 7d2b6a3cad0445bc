// Milestones 2 and 3: times and correctness of the network with our
// convolutions.
#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
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

// The weight file's number of correct answers for the first `size` images.
std::optional<int64_t> Expected(const RunRecord& record) {
  const auto found =
      record.weights_metadata.find(absl::StrCat("correct_", record.size));
  int64_t expected;
  if (found == record.weights_metadata.end() ||
      !absl::SimpleAtoi(found->second, &expected)) {
    return std::nullopt;
  }
  return expected;
}

std::vector<const RunRecord*> CpuRuns(const Source& source,
                                      Deliverable& deliverable) {
  std::vector<const RunRecord*> runs = FindAll(*source.records, {"m2", "cpu"});
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

// Uses the runs with the same variants as the last one, since a line shows one
// variant.
void AddSizeChart(const std::string& name, std::vector<const RunRecord*> runs,
                  const std::string& caption, Deliverable& deliverable) {
  const std::string variants = VariantNames(runs.back()->convolutions);
  runs.erase(std::remove_if(runs.begin(), runs.end(),
                            [&](const RunRecord* run) {
                              return VariantNames(run->convolutions) !=
                                     variants;
                            }),
             runs.end());
  runs = NewestPerSize(runs);
  if (runs.size() < 2) return;
  std::vector<TimeCurve> curves(MostConvolutions(runs));
  for (size_t i = 0; i < curves.size(); ++i) {
    curves[i].title = absl::StrCat("convolution ", i + 1);
    for (const RunRecord* run : runs) {
      if (i >= run->convolutions.size()) continue;
      curves[i].points.emplace_back(run->size,
                                    Median(run->convolutions[i].op_time_ns));
    }
  }
  deliverable.blocks.push_back(Figure{
      OpTimeChart(name,
                  absl::StrCat(runs[0]->milestone, ", ", runs[0]->network, ", ",
                               variants),
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
        {Code(VariantNames(run->convolutions)), Count(run->size),
         Count(run->threads),
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
  AddRun(*runs.back(), deliverable);
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
    row = {Code(VariantNames(run->convolutions)), Count(run->size),
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
    what.items.push_back(Code(name) + ": " + variant.summary + " " +
                         variant.reason);
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
    const RunRecord* run = Find(*source.records, {"m3", "gpu", size});
    if (run != nullptr) {
      runs.push_back(run);
    } else {
      AddMissing(
          deliverable,
          absl::StrCat("there is no run with ", Plural(size, "image")),
          RecordingCommand(source, "m3", absl::StrCat(size),
                           absl::StrCat("m3-", source.network, "-", size)));
    }
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
    const std::optional<int64_t> expected = Expected(*run);
    all_known &= expected.has_value();
    all_as_expected &= !expected || *expected == run->correct;
    std::vector<Text>& row = table.rows.emplace_back();
    row = {
        Count(run->size), Code(VariantNames(run->convolutions)),
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
  bool found = false;
  for (const ProfileEntry& entry : activities.entries) {
    if (convolutions == 0 ||
        !absl::StrContains(
            entry.name,
            KernelPrefix(record->convolutions[0].variant) + "Kernel")) {
      continue;
    }
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
