#include "reports/deliverables/time_tables.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/record/statistics.h"
#include "reports/deliverables/charts.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

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

}  // namespace

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

std::vector<const RunRecord*> ContributedFirst(
    std::vector<const RunRecord*> runs) {
  absl::c_stable_partition(
      runs, [](const RunRecord* run) { return IsContributed(*run); });
  return runs;
}

void AddSizeChart(const std::string& name,
                  const std::vector<const RunRecord*>& runs,
                  const std::string& caption, Deliverable& deliverable) {
  std::vector<Curve> curves;
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
      Curve& curve = curves.emplace_back();
      curve.title = absl::StrCat("convolution ", i + 1,
                                 contributed ? ", contributed" : "");
      for (const RunRecord* run : same) {
        if (i >= run->convolutions.size()) continue;
        curve.points.emplace_back(
            run->size, Median(run->convolutions[i].op_time_ns) * 1e-6);
      }
    }
  }
  if (curves.empty()) return;
  deliverable.blocks.push_back(Figure{
      CurvesChart(
          name,
          absl::StrCat(runs[0]->milestone, ", ", runs[0]->network, ", ", shown),
          "op time", "ms", curves),
      "Lines: the op time of each convolution against the number of images",
      caption});
}

Text ReachedText(const RunRecord& run) {
  return VariantsText(run) +
         absl::StrCat(": the op times of ", Plural(run.size, "image"),
                      " add up to ") +
         Strong(Milliseconds(OpTimeSum(run.convolutions)) + " ms") +
         ", the whole program takes " + ProgramSeconds(run) + " s; " +
         CountText(run) + " are right.";
}

}  // namespace convlab
