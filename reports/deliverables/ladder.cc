// Milestone 4: the ladder of optimizations.
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/hardware/floor.h"
#include "common/record/statistics.h"
#include "reports/deliverables/counter_tables.h"
#include "reports/deliverables/ladder_tables.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

void AddOverlaps(const RunRecord& ladder, std::vector<Block>& blocks) {
  for (const OverlapRecord& overlap : ladder.overlaps) {
    if (overlap.serial_ns.empty() || overlap.overlapped_ns.empty()) continue;
    const double serial = Median(overlap.serial_ns);
    const double overlapped = Median(overlap.overlapped_ns);
    blocks.push_back(Paragraph{absl::StrFormat(
        "Streams in a whole program: convolution %d of %s from and to host "
        "memory in %d slices took %.3f ms one after the other and %.3f ms in "
        "streams, %s as fast.",
        overlap.layer, Plural(overlap.images, "image"), overlap.slices,
        serial * 1e-6, overlapped * 1e-6, Ratio(serial, overlapped))});
  }
}

Deliverable Ladder(const Source& source, const RunRecord& ladder,
                   const LadderRows& rows,
                   const std::vector<ComparedRow>& compared) {
  Deliverable section = {"The ladder", "ladder"};
  std::vector<Block>& blocks = section.blocks;
  const std::optional<Rates> peaks = DataSheetRates(ladder.gpu.name);
  blocks.push_back(Paragraph{
      Text("Each variant was verified against float64, then timed by ") +
      Code(CommandText(ladder)) + ". Times are medians of op times. " +
      AppendixNote(source, "The other rungs: ", "all rungs", "all-rungs")});
  blocks.emplace_back(ComparedTable(source, ladder, rows, compared));
  Append(blocks, SpeedupPicture(source, ladder, compared));
  if (ladder.peers.empty()) {
    section.complete = false;
    blocks.push_back(Paragraph{
        Text("The library was not measured in this run: it needs cuDNN where "
             "the program finds it. ") +
        Code(LadderCommand(source, ladder.size)) + " measures it."});
  }
  blocks.push_back(Generated(
      peaks ? FloorText(*peaks, "the peaks in the GPU's data sheet")
            : absl::StrCat("The floor is not known: this project has no data "
                           "sheet of ",
                           ladder.gpu.name, ".")));
  if (peaks) {
    blocks.push_back(Figure{
        RooflineChart(
            "roofline",
            absl::StrCat("Roofline of ", ladder.network, ", ", ladder.gpu.name),
            TimedOf(compared), *peaks),
        "Roofline: FLOP per second of each variant against FLOP per byte, "
        "under the GPU's limits",
        Text("A point for each variant and convolution, under the peaks of "
             "the data sheet. ") +
            AppendixNote(source, "The numbers: ", "the roofline's numbers",
                         "roofline-numbers")});
  }
  AddOverlaps(ladder, blocks);
  for (const int64_t size : MissingSizes(LadderSizes(source))) {
    AddMissing(section,
               absl::StrCat("there is no run of the ladder with ",
                            Plural(size, "image")),
               LadderCommand(source, size));
  }
  blocks.push_back(Generated(kSpreadRule));
  return section;
}

}  // namespace

Parts Milestone4(const Source& source) {
  Parts parts;
  parts.asked =
      "Three optimizations of the GPU's convolution, each on its own: what it "
      "is, why it should help, its op times at three sizes against the one "
      "before, what the profiler shows, and whether it helped.";
  const RunRecord* ladder = FindLadder(source);
  if (ladder == nullptr) {
    Deliverable missing = {"The ladder", "ladder"};
    AddMissing(missing, "there is no run of the ladder on the GPU",
               LadderCommand(source, kSizes[2]));
    parts.sections.push_back(std::move(missing));
    return parts;
  }
  const LadderRows rows = RowsOf(*ladder);
  const std::vector<ChosenRung> chosen =
      ChosenRungs(source, *ladder, rows, /*is_final=*/false);
  const std::vector<ComparedRow> compared =
      ComparedRows(source, *ladder, rows, chosen);
  std::vector<std::string> names;
  const LadderRun* base = BaseOf(source, *ladder);
  if (base != nullptr) names.push_back(base->variant);
  for (const ChosenRung& one : chosen) {
    const LadderRun& run = *one.row->run;
    if (base == nullptr || run.variant != base->variant) {
      names.push_back(run.variant);
    }
    if (!one.row->times) {
      parts.reached.push_back(VariantText(run.variant, *one.row->variant) +
                              " was not timed: " + run.failure + ".");
    } else if (one.before != nullptr) {
      parts.reached.push_back(
          VariantText(run.variant, *one.row->variant) + ": " +
          Strong(Milliseconds(one.row->times->sum_ns) + " ms") + ", " +
          AsFast(OpTimeSum(one.before->convolutions) / one.row->times->sum_ns) +
          " as " + Code(one.before->variant) + ".");
    }
  }
  const bool any_contributed = absl::c_any_of(
      chosen, [](const ChosenRung& one) { return one.row->is_contributed; });
  if (source.optimizations.empty() && !any_contributed) {
    parts.reached.push_back(
        Text("Discussed are the first rungs that are at least a tenth faster "
             "than all before them; ") +
        Code("--optimizations") + " takes others.");
  }
  parts.picture = {ComparedPicture(source, *ladder, rows, compared)};
  parts.sections.push_back(Ladder(source, *ladder, rows, compared));
  for (Deliverable& section : Optimizations(source, *ladder, chosen)) {
    parts.sections.push_back(std::move(section));
  }
  parts.appendix = {AllRungs(*ladder, rows), RooflineNumbers(*ladder, compared),
                    CountersOf(source, names)};
  return parts;
}

}  // namespace convlab
