#include "reports/deliverables/ladder_tables.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/record/statistics.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

std::string Percent(const std::optional<double>& share) {
  return share ? absl::StrFormat("%.1f %%", 100 * *share) : "–";
}

const LadderRow* RowOf(const LadderRows& rows, const LadderRun* run) {
  for (const LadderRow& row : rows.rows) {
    if (row.run == run) return &row;
  }
  return nullptr;
}

Contender ContenderOf(std::string name, const std::string& accuracy_class,
                      const std::vector<ConvolutionRecord>& convolutions) {
  Contender one;
  one.name = std::move(name);
  one.accuracy_class = accuracy_class;
  for (const ConvolutionRecord& convolution : convolutions) {
    one.ns.push_back(Median(convolution.op_time_ns));
    one.flops.push_back(static_cast<double>(convolution.flops));
    one.bytes.push_back(static_cast<double>(convolution.min_bytes));
  }
  return one;
}

std::optional<double> FloorShare(const RunRecord& record,
                                 const std::vector<ConvolutionRecord>& from) {
  std::optional<double> share = FloorNs(record, from);
  if (share) *share /= OpTimeSum(from);
  return share;
}

// The fastest rung of class fp32 in total, and for each convolution.
struct Best {
  const LadderRow* rung = nullptr;
  std::vector<ConvolutionRecord> layers;
};
Best BestOf(const LadderRows& rows) {
  Best best;
  for (const LadderRow& row : rows.rows) {
    if (!row.times || row.is_contributed ||
        row.variant->accuracy_class != "fp32") {
      continue;
    }
    if (best.rung == nullptr || row.times->sum_ns < best.rung->times->sum_ns) {
      best.rung = &row;
    }
    if (best.layers.empty()) best.layers = row.run->convolutions;
    const size_t layers =
        std::min(best.layers.size(), row.run->convolutions.size());
    for (size_t i = 0; i < layers; ++i) {
      const ConvolutionRecord& other = row.run->convolutions[i];
      if (Median(other.op_time_ns) < Median(best.layers[i].op_time_ns)) {
        best.layers[i] = other;
      }
    }
  }
  return best;
}

// The rungs of class fp32 that are at least a tenth faster than every one
// before them: the first three, or for the final report the next three, and
// before them the one that they start from.
std::pair<const LadderRun*, std::vector<const LadderRow*>> StepsOf(
    const LadderRows& rows, bool is_final) {
  std::vector<const LadderRow*> steps;
  for (const LadderRow& row : rows.rows) {
    if (!row.times || row.is_contributed ||
        row.variant->accuracy_class != "fp32") {
      continue;
    }
    if (steps.empty() ||
        steps.back()->times->sum_ns > 1.1 * row.times->sum_ns) {
      steps.push_back(&row);
    }
  }
  constexpr size_t kEach = 3;
  const size_t begin = is_final && steps.size() > kEach + 1 ? kEach : 0;
  const size_t end = std::min(steps.size(), begin + kEach + 1);
  if (steps.size() < 2) return {};
  return {steps[begin]->run,
          {steps.begin() + static_cast<long>(begin) + 1,
           steps.begin() + static_cast<long>(end)}};
}

}  // namespace

const LadderRun* RunOf(const RunRecord& ladder, absl::string_view variant) {
  for (const LadderRun& run : ladder.ladder) {
    if (run.variant == variant) return &run;
  }
  return nullptr;
}

const LadderRun* BaseOf(const Source& source, const RunRecord& ladder) {
  if (!source.base.empty()) return RunOf(ladder, source.base);
  for (const LadderRun& run : ladder.ladder) {
    if (run.failure.empty() &&
        !IsContributed(ladder.variants.at(run.variant))) {
      return &run;
    }
  }
  return nullptr;
}

std::vector<ChosenRung> ChosenRungs(const Source& source,
                                    const RunRecord& ladder,
                                    const LadderRows& rows, bool is_final) {
  std::vector<const LadderRow*> contributed, rungs;
  const LadderRun* start = nullptr;
  for (const LadderRow& row : rows.rows) {
    if (row.is_contributed) contributed.push_back(&row);
  }
  if (!source.optimizations.empty()) {
    for (const std::string& name : source.optimizations) {
      const LadderRow* row = RowOf(rows, RunOf(ladder, name));
      if (row != nullptr && !row->is_contributed) rungs.push_back(row);
    }
  } else if (contributed.empty()) {
    std::tie(start, rungs) = StepsOf(rows, is_final);
  }
  std::vector<ChosenRung> chosen;
  const LadderRun* base = BaseOf(source, ladder);
  for (const auto* some : {&contributed, &rungs}) {
    const LadderRun* before =
        some == &rungs && start != nullptr && source.base.empty() ? start
                                                                  : base;
    for (const LadderRow* row : *some) {
      const bool is_compared = row->times && before != nullptr &&
                               before != row->run && before->failure.empty();
      chosen.push_back({row, is_compared ? before : nullptr});
      if (source.base.empty() && row->times) before = row->run;
    }
  }
  return chosen;
}

std::vector<ComparedRow> ComparedRows(const Source& source,
                                      const RunRecord& ladder,
                                      const LadderRows& rows,
                                      const std::vector<ChosenRung>& chosen) {
  std::vector<ComparedRow> compared;
  const std::optional<int64_t> expected = ExpectedCorrect(ladder);
  const auto add_rung = [&](const LadderRow& row, const LadderRun* before,
                            const char* note) {
    const LadderRun& run = *row.run;
    ComparedRow& one = compared.emplace_back();
    one.contender =
        ContenderOf(run.variant, row.variant->accuracy_class, run.convolutions);
    one.contender.is_own = one.contender.is_strong = row.is_contributed;
    one.name = VariantText(run.variant, *row.variant) + note;
    one.failure = run.failure;
    if (!row.times) return;
    one.correct =
        CountText(run.correct, expected, {row.variant->accuracy_class});
    one.floor_share = row.floor_share;
    one.error = run.relative_error;
    if (before != nullptr) {
      one.than_before = OpTimeSum(before->convolutions) / row.times->sum_ns;
    }
  };
  const auto is_chosen = [&](const LadderRun* run) {
    return absl::c_any_of(
        chosen, [&](const ChosenRung& one) { return one.row->run == run; });
  };
  const LadderRow* base = RowOf(rows, BaseOf(source, ladder));
  const auto add_base = [&] {
    if (base == nullptr || is_chosen(base->run)) return;
    add_rung(*base, nullptr, ", the base");
  };
  bool is_base_added = false;
  for (const ChosenRung& one : chosen) {
    if (!one.row->is_contributed && !is_base_added) {
      add_base();
      is_base_added = true;
    }
    // What it is compared with stands beside it.
    const LadderRow* before = RowOf(rows, one.before);
    if (before != nullptr && before != base && !is_chosen(one.before)) {
      add_rung(*before, nullptr, ", the one before");
    }
    add_rung(*one.row, one.before, "");
  }
  if (!is_base_added) add_base();
  const Best best = BestOf(rows);
  if (best.rung != nullptr && !is_chosen(best.rung->run) && best.rung != base) {
    add_rung(*best.rung, nullptr, ", the fastest rung of class fp32");
  }
  const std::string best_names = VariantNames(best.layers);
  if (best.rung != nullptr && best_names != best.rung->run->variant) {
    ComparedRow& one = compared.emplace_back();
    one.contender = ContenderOf("best per layer", "fp32", best.layers);
    one.name = Text("best per layer: ") + Code(best_names);
    one.floor_share = FloorShare(ladder, best.layers);
  }
  const RunRecord* final_run = FinalRun(source);
  if (final_run != nullptr && RefusedKernel(*final_run) == nullptr &&
      final_run->size == ladder.size && !final_run->convolutions.empty()) {
    ComparedRow& one = compared.emplace_back();
    one.contender =
        ContenderOf("final",
                    final_run->variants.at(final_run->convolutions[0].variant)
                        .accuracy_class,
                    final_run->convolutions);
    one.contender.is_own = IsContributed(*final_run);
    one.name = Code("final") + ": " + VariantsText(*final_run);
    one.correct = CountText(*final_run);
    one.floor_share = FloorShare(*final_run, final_run->convolutions);
  }
  // The fastest stands out, beside what is the participant's.
  ComparedRow* fastest = nullptr;
  for (ComparedRow& row : compared) {
    if (row.contender.ns.empty() || !row.failure.empty()) continue;
    if (fastest == nullptr ||
        row.contender.sum_ns() < fastest->contender.sum_ns()) {
      fastest = &row;
    }
  }
  if (fastest != nullptr) fastest->contender.is_strong = true;
  return compared;
}

Table ComparedTable(const Source& source, const RunRecord& ladder,
                    const LadderRows& rows,
                    const std::vector<ComparedRow>& compared) {
  const LadderRun* base = BaseOf(source, ladder);
  const double base_ns = base == nullptr || !base->failure.empty()
                             ? 0
                             : OpTimeSum(base->convolutions);
  Table table = {{{"variant", false},
                  {"class", false},
                  {"op times, ms"},
                  {"sum, ms"},
                  {"over the one before"},
                  {Text("over ") +
                   (base == nullptr ? Text("the base") : Code(base->variant))},
                  {"share of the floor"},
                  {"error"},
                  {"correct"}},
                 {}};
  for (const ComparedRow& row : compared) {
    std::vector<Text>& cells = table.rows.emplace_back();
    cells = {row.name, row.contender.accuracy_class};
    if (!row.failure.empty() || row.contender.ns.empty()) {
      cells.emplace_back(row.failure);
      cells.resize(table.columns.size(), "–");
      continue;
    }
    const double sum = row.contender.sum_ns();
    cells.insert(cells.end(),
                 {MillisecondsOf(row.contender.ns), Milliseconds(sum),
                  Ratio(row.than_before),
                  base != nullptr && row.contender.name == base->variant
                      ? "–"
                      : Ratio(base_ns, sum),
                  Percent(row.floor_share),
                  row.error ? absl::StrFormat("%.0e", *row.error) : "–",
                  row.correct.empty() ? Text("–") : row.correct});
  }
  if (rows.library) {
    const PeerRecord& peer = *rows.library->first_layer;
    const LadderTimes& times = rows.library->times;
    table.rows.push_back({absl::StrCat(peer.library, ", the best of ",
                                       peer.plans, " plans, kernel time"),
                          peer.accuracy_class, MillisecondsOf(times.ns),
                          Milliseconds(times.sum_ns), "–",
                          Ratio(base_ns, times.sum_ns), "–",
                          absl::StrFormat("%.0e", peer.relative_error), "–"});
  }
  for (const FloorRow& floor : rows.floors) {
    table.rows.push_back(
        {"floor", floor.classes, MillisecondsOf(floor.times.ns),
         Milliseconds(floor.times.sum_ns), "–",
         Ratio(base_ns, floor.times.sum_ns), "100 %", "–", "–"});
  }
  if (!source.base.empty()) {  // every rung is compared with the base
    table.columns.erase(table.columns.begin() + 4);
    for (std::vector<Text>& row : table.rows) row.erase(row.begin() + 4);
  }
  return table;
}

Deliverable AllRungs(const RunRecord& ladder, const LadderRows& rows) {
  Deliverable part = {"All rungs", "all-rungs"};
  const std::optional<int64_t> expected = ExpectedCorrect(ladder);
  Table table = {{{"rung"},
                  {"variant", false},
                  {"op times, ms"},
                  {"sum, ms"},
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
    // A contributed kernel is no rung.
    cells = {row.is_contributed ? "–" : Count(row.variant->rung),
             VariantText(run.variant, *row.variant)};
    if (!row.times) {
      cells.emplace_back(run.failure);
      cells.resize(table.columns.size(), "–");
      continue;
    }
    cells.insert(
        cells.end(),
        {MillisecondsOf(row.times->ns), Milliseconds(row.times->sum_ns),
         Ratio(row.times->than_first), Ratio(row.times->than_library),
         Percent(row.floor_share), row.variant->accuracy_class,
         absl::StrFormat("%.0e", run.relative_error),
         CountText(run.correct, expected, {row.variant->accuracy_class})});
  }
  // The charts first: what follows them may be broken by a page's end.
  for (Chart& chart : LadderCharts("all-rungs", ladder)) {
    part.blocks.emplace_back(Figure{
        std::move(chart), "Dots: the sum of the op times of each variant",
        "The sum of the op times of each."});
  }
  part.blocks.emplace_back(std::move(table));
  return part;
}

Deliverable RooflineNumbers(const RunRecord& ladder,
                            const std::vector<ComparedRow>& compared) {
  Deliverable part = {"The roofline's numbers", "roofline-numbers"};
  size_t convolutions = 0;
  for (const LadderRun& run : ladder.ladder) {
    convolutions = std::max(convolutions, run.convolutions.size());
  }
  Table table = {{{"variant", false}}, {}};
  for (size_t i = 0; i < convolutions; ++i) {
    const std::string layer = absl::StrCat("convolution ", i + 1, ", ");
    table.columns.push_back({layer + "FLOP/byte"});
    table.columns.push_back({layer + "TFLOP/s"});
  }
  for (const ComparedRow& compared_row : compared) {
    const Contender& one = compared_row.contender;
    if (one.ns.empty() || !compared_row.failure.empty()) continue;
    std::vector<Text>& row = table.rows.emplace_back();
    row.push_back(compared_row.name);
    for (size_t i = 0; i < one.ns.size(); ++i) {
      row.emplace_back(absl::StrFormat("%.1f", one.flops[i] / one.bytes[i]));
      row.emplace_back(
          absl::StrFormat("%.2f", one.flops[i] / one.ns[i] * 1e-3));
    }
    row.resize(table.columns.size(), "–");
  }
  part.blocks.emplace_back(std::move(table));
  return part;
}

}  // namespace convlab
