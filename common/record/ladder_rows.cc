#include "common/record/ladder_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/accuracy/accuracy.h"
#include "common/hardware/floor.h"
#include "common/record/statistics.h"

namespace convlab {
namespace {

// Sums up the times and compares them with other sums, which are 0 if they are
// not known.
LadderTimes TimesOf(std::vector<double> ns, double first_ns,
                    double library_ns) {
  LadderTimes times;
  times.ns = std::move(ns);
  for (const double one : times.ns) times.sum_ns += one;
  if (times.sum_ns <= 0) return times;
  if (first_ns > 0) times.than_first = first_ns / times.sum_ns;
  if (library_ns > 0) times.than_library = library_ns / times.sum_ns;
  return times;
}

std::vector<double> OpTimes(const LadderRun& run) {
  std::vector<double> ns;
  for (const ConvolutionRecord& convolution : run.convolutions) {
    ns.push_back(Median(convolution.op_time_ns));
  }
  return ns;
}

// One row for each class in the ladder; rows with equal times are merged.
std::vector<FloorRow> FloorsOf(const RunRecord& record,
                               const std::vector<LadderRow>& rows,
                               double first_ns, double library_ns) {
  std::vector<FloorRow> floors;
  const std::optional<Rates> rates = DataSheetRates(record.gpu.name);
  if (!rates) return floors;
  std::vector<std::string> seen;
  for (const LadderRow& row : rows) {
    const std::string& name = row.variant->accuracy_class;
    const std::optional<AccuracyClass> accuracy = FindAccuracyClass(name);
    if (!row.times || !accuracy ||
        std::find(seen.begin(), seen.end(), name) != seen.end()) {
      continue;
    }
    seen.push_back(name);
    std::vector<double> ns;
    for (const ConvolutionRecord& convolution : row.run->convolutions) {
      ns.push_back(
          FloorNs(convolution.flops, convolution.min_bytes, *accuracy, *rates)
              .value_or(0));
    }
    const auto same =
        std::find_if(floors.begin(), floors.end(),
                     [&](const FloorRow& one) { return one.times.ns == ns; });
    if (same != floors.end()) {
      absl::StrAppend(&same->classes, ", ", name);
    } else {
      floors.push_back({name, TimesOf(std::move(ns), first_ns, library_ns)});
    }
  }
  return floors;
}

}  // namespace

LadderRows RowsOf(const RunRecord& record) {
  LadderRows rows;
  double library_ns = 0, first_ns = 0;
  const LadderRun* first = nullptr;
  std::vector<double> library;
  for (const PeerRecord& peer : record.peers) {
    library.push_back(Median(peer.kernel_time_ns));
    library_ns += library.back();
  }
  // Rows are compared with the first of ours, wherever contributed ones stand.
  for (const LadderRun& run : record.ladder) {
    if (IsContributed(record.variants.at(run.variant))) continue;
    if (run.failure.empty()) first_ns = OpTimeSum(run.convolutions);
    first = &run;
    break;
  }
  const LadderRun* before = nullptr;
  for (const LadderRun& run : record.ladder) {
    LadderRow& row = rows.rows.emplace_back();
    row.run = &run;
    row.variant = &record.variants.at(run.variant);
    row.is_contributed = IsContributed(*row.variant);
    row.is_lesson = !row.is_contributed && (row.variant->track.empty() ||
                                            row.variant->track == "lesson");
    if (!run.failure.empty()) continue;
    if (row.is_lesson) row.before = before;
    row.times = TimesOf(OpTimes(run), &run == first ? 0 : first_ns, library_ns);
    const double sum_ns = row.times->sum_ns;
    if (row.before != nullptr && sum_ns > 0) {
      row.than_before = OpTimeSum(row.before->convolutions) / sum_ns;
    }
    for (const ConvolutionRecord& convolution : run.convolutions) {
      row.flops += static_cast<double>(convolution.flops);
    }
    const std::optional<double> floor = FloorNs(record, run.convolutions);
    if (floor && sum_ns > 0) row.floor_share = *floor / sum_ns;
    if (row.is_lesson) before = &run;
  }
  std::stable_partition(
      rows.rows.begin(), rows.rows.end(),
      [](const LadderRow& row) { return row.is_contributed; });
  if (!library.empty()) {
    rows.library = {&record.peers[0],
                    TimesOf(std::move(library), first_ns, /*library_ns=*/0)};
  }
  rows.floors = FloorsOf(record, rows.rows, first_ns, library_ns);
  return rows;
}

}  // namespace convlab
