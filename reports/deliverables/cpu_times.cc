// Milestone 2: times of the network with our convolution on the CPU.
#include <algorithm>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/statistics.h"
#include "reports/deliverables/charts.h"
#include "reports/deliverables/deliverable.h"
#include "reports/deliverables/ladder_tables.h"
#include "reports/deliverables/profile_tables.h"
#include "reports/deliverables/time_tables.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

std::vector<const RunRecord*> CpuRuns(const Source& source,
                                      Deliverable& deliverable) {
  std::vector<const RunRecord*> runs = NewestRuns(source, "m2", "cpu");
  if (runs.empty()) {
    AddMissing(deliverable,
               "there is no run of the network with a convolution on the CPU",
               RecordingCommand(source, "m2", "",
                                absl::StrCat("m2-", source.network)));
  }
  return runs;
}

Deliverable ProgramTime(const Source& source) {
  Deliverable deliverable = {"Whole program execution time", "program-time"};
  const std::vector<const RunRecord*> runs = CpuRuns(source, deliverable);
  if (runs.empty()) return deliverable;
  Table table = {{{"variant", false},
                  {"images"},
                  {"CPU", false},
                  {"program, s"},
                  {"user, s"},
                  {"system, s"},
                  {"memory, MB"},
                  {"correct", false}},
                 {}};
  for (const RunRecord* run : runs) {
    const ResourceUsage& usage = run->usage;
    table.rows.push_back(
        {VariantsText(*run), Count(run->size), CpuUse(*run),
         ProgramSeconds(*run), absl::StrFormat("%.2f", usage.user_ns * 1e-9),
         absl::StrFormat("%.2f", usage.system_ns * 1e-9),
         usage.max_resident_bytes > 0
             ? absl::StrFormat("%.0f", usage.max_resident_bytes * 1e-6)
             : "–",
         CountText(*run)});
  }
  deliverable.blocks.push_back(std::move(table));
  for (const RunRecord* run : FailedRuns(source, "m2")) {
    deliverable.blocks.push_back(Paragraph{FailureText(*run)});
  }
  return deliverable;
}

Deliverable CpuOpTimes(const Source& source) {
  Deliverable deliverable = {"Op times on the CPU", "op-times"};
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
  what.is_generated = true;
  for (const auto& [name, variant] : variants) {
    what.items.push_back(DescribeVariant(name, variant));
  }
  deliverable.blocks.push_back(std::move(what));
  AddSizeChart("m2-op-times", runs,
               "Op times on the CPU against the number of images.",
               deliverable);
  return deliverable;
}

}  // namespace

Parts Milestone2(const Source& source) {
  Parts parts;
  parts.asked =
      "The network with a convolution of our own on the CPU: what the whole "
      "program takes, and the op time of each convolution.";
  parts.sections = {ProgramTime(source), CpuOpTimes(source)};
  Wanted wanted = {"m4", "cpu"};
  wanted.ladder = true;
  const RunRecord* ladder = Find(*source.records, wanted);
  if (ladder != nullptr) parts.appendix = {AllRungs(*ladder, RowsOf(*ladder))};
  const std::vector<const RunRecord*> runs = NewestRuns(source, "m2", "cpu");
  if (runs.empty()) return parts;
  // The size with the most runs; of equally many, the largest.
  std::map<int64_t, std::vector<const RunRecord*>> sizes;
  for (const RunRecord* run : runs) sizes[run->size].push_back(run);
  const std::vector<const RunRecord*>& same =
      std::max_element(sizes.begin(), sizes.end(),
                       [](const auto& a, const auto& b) {
                         return std::pair(a.second.size(), a.first) <
                                std::pair(b.second.size(), b.first);
                       })
          ->second;
  const std::vector<const RunRecord*> reached = ReachedRuns(same);
  for (const RunRecord* run : reached) {
    parts.reached.push_back(ReachedText(*run));
  }
  std::vector<Contender> contenders;
  for (const RunRecord* run : same) {
    if (RefusedKernel(*run) != nullptr) continue;
    Contender& one = contenders.emplace_back();
    one.name = VariantNames(run->convolutions);
    one.accuracy_class =
        run->variants.at(run->convolutions[0].variant).accuracy_class;
    one.is_own = one.is_strong = IsContributed(*run);
    for (const ConvolutionRecord& convolution : run->convolutions) {
      one.ns.push_back(Median(convolution.op_time_ns));
    }
  }
  if (contenders.size() > 1) {
    absl::c_stable_sort(contenders, [](const Contender& a, const Contender& b) {
      return a.is_own != b.is_own ? a.is_own : a.sum_ns() > b.sum_ns();
    });
    contenders.back().is_strong = true;
    parts.picture = {Figure{
        LadderChart(
            "m2-ladder",
            absl::StrCat(same[0]->network, ", ", Plural(same[0]->size, "image"),
                         ", ", same[0]->host.cpu, ", ",
                         Plural(same[0]->host.cores, "core")),
            contenders, "naive", {}),
        "Dots: the sum of the op times of each variant on the CPU",
        "The sum of the op times of each variant on the CPU, and how many "
        "times as fast as naive it is."}};
  } else {
    parts.picture = {TimePicture("m2-time", *reached[0])};
  }
  std::vector<const RunRecord*> shown = FailedRuns(source, "m2");
  for (const RunRecord* run : shown) {
    parts.reached.push_back(FailureText(*run));
  }
  shown.insert(shown.end(), reached.begin(), reached.end());
  parts.appendix.push_back(Outputs(shown));
  return parts;
}

}  // namespace convlab
