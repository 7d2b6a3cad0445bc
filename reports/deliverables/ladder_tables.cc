// Milestone 4: the ladder of optimizations as a whole.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/hardware/floor.h"
#include "common/record/ladder_rows.h"
#include "common/record/statistics.h"
#include "reports/deliverables/charts.h"
#include "reports/deliverables/counter_tables.h"
#include "reports/deliverables/deliverable.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

std::string Percent(const std::optional<double>& share) {
  return share ? absl::StrFormat("%.1f %%", 100 * *share) : "–";
}

Text Intro(const RunRecord& ladder, const std::optional<Rates>& peaks) {
  Text intro =
      Text("Each variant was verified against float64, then timed: ") +
      Code(CommandText(ladder)) +
      ". Times are medians of op times: everything that the operation does, "
      "between two synchronisations of the device. ";
  if (peaks) {
    return intro + FloorText(*peaks, "the peaks in the GPU's data sheet") +
           " The share of the floor is the floor divided by the time: 100 % is "
           "the limit.";
  }
  return intro + absl::StrCat(
                     "The floor is not known: this project has no data sheet "
                     "of ",
                     ladder.gpu.name, ".");
}

// A contributed kernel is no rung.
std::string RungText(const LadderRow& row) {
  return row.is_contributed ? "–" : Count(row.variant->rung);
}

// A row for each variant, one for the library, and one for each floor.
Table TimesTable(const LadderRows& rows) {
  Table table = {{{"rung"},
                  {"variant", false},
                  {"op times, ms"},
                  {"sum, ms"},
                  {"speedup over the rung before"},
                  {"over the first"},
                  {"over the library"},
                  {"share of the floor"},
                  {"class", false},
                  {"error"},
                  {"correct"}},
                 {}};
  for (const LadderRow& row : rows.rows) {
    const LadderRun& run = *row.run;
    std::vector<Text>& cells = table.rows.emplace_back();
    cells = {RungText(row), VariantText(run.variant, *row.variant)};
    if (!row.times) {
      cells.push_back(run.failure);
      cells.resize(table.columns.size(), "–");
      continue;
    }
    cells.insert(
        cells.end(),
        {MillisecondsOf(row.times->ns), Milliseconds(row.times->sum_ns),
         Ratio(row.than_before), Ratio(row.times->than_first),
         Ratio(row.times->than_library), Percent(row.floor_share),
         row.variant->accuracy_class,
         absl::StrFormat("%.0e", run.relative_error), Count(run.correct)});
  }
  if (rows.library) {
    const PeerRecord& peer = *rows.library->first_layer;
    const LadderTimes& times = rows.library->times;
    table.rows.push_back({"–",
                          absl::StrCat(peer.library, ", the best of ",
                                       peer.plans, " plans, kernel time"),
                          MillisecondsOf(times.ns), Milliseconds(times.sum_ns),
                          "–", Ratio(times.than_first), "–", "–",
                          peer.accuracy_class,
                          absl::StrFormat("%.0e", peer.relative_error), "–"});
  }
  for (const FloorRow& floor : rows.floors) {
    table.rows.push_back(
        {"–", "floor", MillisecondsOf(floor.times.ns),
         Milliseconds(floor.times.sum_ns), "–", Ratio(floor.times.than_first),
         Ratio(floor.times.than_library), "100 %", floor.classes, "–", "–"});
  }
  return table;
}

// The numbers of the roofline's points.
Table RooflineTable(const RunRecord& ladder) {
  size_t convolutions = 0;
  for (const LadderRun& run : ladder.ladder) {
    convolutions = std::max(convolutions, run.convolutions.size());
  }
  Table table = {{{"rung"}, {"variant", false}}, {}};
  for (size_t i = 0; i < convolutions; ++i) {
    const std::string layer = absl::StrCat("conv. ", i + 1, ", ");
    table.columns.push_back({layer + "FLOP/byte"});
    table.columns.push_back({layer + "TFLOP/s"});
    table.columns.push_back({layer + "share of the floor"});
  }
  for (const LadderRow& variant : RowsOf(ladder).rows) {
    if (!variant.times) continue;
    std::vector<Text>& row = table.rows.emplace_back();
    row = {RungText(variant),
           VariantText(variant.run->variant, *variant.variant)};
    for (const ConvolutionRecord& convolution : variant.run->convolutions) {
      const double time = Median(convolution.op_time_ns);
      const double flops = static_cast<double>(convolution.flops);
      std::optional<double> share = FloorNs(ladder, convolution);
      if (share) *share /= time;
      row.insert(
          row.end(),
          {absl::StrFormat("%.1f", flops / convolution.min_bytes),
           absl::StrFormat("%.2f", flops / time * 1e-3), Percent(share)});
    }
    row.resize(table.columns.size(), "–");
  }
  return table;
}

void AddRoofline(const RunRecord& ladder, const Rates& peaks,
                 std::vector<Block>& blocks) {
  blocks.push_back(Figure{
      RooflineChart("roofline", ladder, peaks),
      "Roofline: FLOP per second of each variant against FLOP per byte, under "
      "the GPU's limits",
      absl::StrFormat(
          "Roofline. A point is a variant on one convolution, labelled with "
          "its rung; the lines are the peaks of the data sheet: device memory, "
          "%.2f TB/s, on the left; on the right arithmetic with one product of "
          "halves on tensor cores, %.0f TFLOP/s, in class fp32, %.0f TFLOP/s, "
          "and with the float32 units alone, %.0f TFLOP/s. The numbers:",
          peaks.memory_gbs.value_or(0) * 1e-3,
          ClassTflops(AccuracyClass::kFp16, peaks).value_or(0),
          ClassTflops(AccuracyClass::kFp32, peaks).value_or(0),
          peaks.fp32_tflops.value_or(0))});
  blocks.push_back(RooflineTable(ladder));
}

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

}  // namespace

Deliverable Ladder(const Source& source) {
  Deliverable deliverable = {"The ladder", {}};
  std::vector<Block>& blocks = deliverable.blocks;
  const RunRecord* ladder = FindLadder(source);
  if (ladder == nullptr) {
    AddMissing(deliverable, "there is no run of the ladder on the GPU",
               LadderCommand(source, kSizes[2]));
    return deliverable;
  }
  const std::optional<Rates> peaks = DataSheetRates(ladder->gpu.name);
  blocks.push_back(Paragraph{Intro(*ladder, peaks)});
  blocks.push_back(TimesTable(RowsOf(*ladder)));
  if (ladder->peers.empty()) {
    deliverable.complete = false;
    blocks.push_back(Paragraph{
        Text("The library was not measured in this run: it needs cuDNN where "
             "the program finds it. ") +
        Code(LadderCommand(source, ladder->size)) + " measures it."});
  }
  blocks.push_back(Figure{LadderChart("ladder", *ladder),
                          "Bars: the sum of the op times of each variant",
                          "The ladder: sum of the op times of each variant."});
  if (peaks) AddRoofline(*ladder, *peaks, blocks);
  AddOverlaps(*ladder, blocks);
  for (const int64_t size : kSizes) {
    if (FindLadder(source, size) != nullptr) continue;
    AddMissing(deliverable,
               absl::StrCat("there is no run of the ladder with ",
                            Plural(size, "image")),
               LadderCommand(source, size));
  }
  AddCounterRules(source, *ladder, deliverable);
  return deliverable;
}

}  // namespace convlab
