// Milestone 4: each optimization of the ladder on its own.
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/ladder_rows.h"
#include "common/record/statistics.h"
#include "reports/deliverables/counter_tables.h"
#include "reports/deliverables/deliverable.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

const LadderRun* RunOf(const RunRecord& ladder, absl::string_view variant) {
  for (const LadderRun& run : ladder.ladder) {
    if (run.variant == variant) return &run;
  }
  return nullptr;
}

std::string OpTimes(const LadderRun& run) {
  std::vector<double> times;
  for (const ConvolutionRecord& convolution : run.convolutions) {
    times.push_back(Median(convolution.op_time_ns));
  }
  return MillisecondsOf(times);
}

// Op times at every size, compared with the rung before.
void AddSizes(const Source& source, const std::string& variant,
              const LadderRun* before, Deliverable& deliverable) {
  Table table = {{{"images"}, {"op times, ms"}, {"sum, ms"}}, {}};
  if (before != nullptr) {
    table.columns.push_back({Code(before->variant) + ", ms"});
    table.columns.push_back({"sum, ms"});
    table.columns.push_back({"speedup"});
    table.columns.push_back({"the difference is", false});
  }
  for (const int64_t size : kSizes) {
    const RunRecord* ladder = FindLadder(source, size);
    const LadderRun* run =
        ladder == nullptr ? nullptr : RunOf(*ladder, variant);
    if (run == nullptr) continue;  // explained once, above the sections
    std::vector<Text>& row = table.rows.emplace_back();
    row.push_back(Count(size));
    if (!run->failure.empty()) {
      row.push_back(run->failure);
      row.resize(table.columns.size(), "–");
      continue;
    }
    row.push_back(OpTimes(*run));
    row.push_back(Milliseconds(OpTimeSum(run->convolutions)));
    if (before == nullptr) continue;
    const LadderRun* other = RunOf(*ladder, before->variant);
    if (other == nullptr || !other->failure.empty()) {
      row.resize(table.columns.size(), "–");
      continue;
    }
    row.push_back(OpTimes(*other));
    row.push_back(Milliseconds(OpTimeSum(other->convolutions)));
    row.push_back(
        Ratio(OpTimeSum(other->convolutions), OpTimeSum(run->convolutions)));
    row.push_back(Name(Compare(SpreadOfSum(run->convolutions),
                               SpreadOfSum(other->convolutions))));
  }
  deliverable.blocks.push_back(std::move(table));
}

// Says whether the variant helped, compared with the rung before and the first
// one.
std::string Verdict(const Source& source, const RunRecord& ladder,
                    const LadderRow& row) {
  if (row.before == nullptr) {
    return "It is the first rung, which the others are compared with.";
  }
  const LadderRun& run = *row.run;
  const LadderRun& before = *row.before;
  const double now = row.times->sum_ns;
  const double then = OpTimeSum(before.convolutions);
  const Difference difference =
      Compare(SpreadOfSum(run.convolutions), SpreadOfSum(before.convolutions));
  const auto as_fast = [](double ratio) {
    return ratio > 1 ? absl::StrFormat("%.2f times as fast", ratio)
                     : absl::StrFormat("%.2f times as slow", 1 / ratio);
  };
  std::string verdict = difference == Difference::kWithinSpread
                            ? "It made no difference beyond the spread"
                        : now < then ? "It helped"
                                     : "It did not help";
  absl::StrAppend(
      &verdict, " at ", Plural(ladder.size, "image"), ": the op times' sum is ",
      Milliseconds(now), " ms, the rung before has ", Milliseconds(then),
      " ms, so it is ", as_fast(*row.than_before), " (", Name(difference), ")");
  if (row.times->than_first && &before != &ladder.ladder.front()) {
    absl::StrAppend(&verdict, "; it is ", as_fast(*row.times->than_first),
                    " as the first rung");
  }
  verdict += ".";
  if (now >= then) verdict += WhyNotFaster(source, run, before);
  return verdict;
}

}  // namespace

std::vector<Deliverable> Optimizations(const Source& source) {
  std::vector<Deliverable> deliverables;
  const RunRecord* ladder = FindLadder(source);
  if (ladder == nullptr) return deliverables;
  const LadderRows rows = RowsOf(*ladder);
  for (const LadderRow& row : rows.rows) {
    const LadderRun& run = *row.run;
    if (!source.optimizations.empty() &&
        !absl::c_linear_search(source.optimizations, run.variant)) {
      continue;
    }
    const VariantRecord& variant = *row.variant;
    Deliverable& deliverable = deliverables.emplace_back();
    deliverable.title = absl::StrCat("Rung ", variant.rung, ": ", run.variant);
    std::vector<Block>& blocks = deliverable.blocks;
    blocks.push_back(
        Paragraph{Strong("What it does.") + " " + variant.summary});
    blocks.push_back(
        Paragraph{Strong("Why it should help.") + " " + variant.reason});
    if (!row.times) {
      blocks.push_back(
          Paragraph{Strong("It was not timed.") + " " + run.failure});
      continue;
    }
    Text place = absl::StrFormat(
        "Rung %d of %d, class %s (largest relative error %.0e), %.2f TFLOP/s",
        variant.rung, rows.rows.back().variant->rung, variant.accuracy_class,
        run.relative_error, row.flops / row.times->sum_ns * 1e-3);
    if (row.floor_share) {
      place +=
          absl::StrFormat(", %.1f %% of the floor", 100 * *row.floor_share);
    }
    blocks.push_back(Paragraph{Strong("Results.") + " " + place + "."});
    AddSizes(source, run.variant, row.before, deliverable);
    AddCounters(source, run.variant, row.before, deliverable);
    blocks.push_back(Paragraph{Strong("Did it help?") + " " +
                               Verdict(source, *ladder, row)});
  }
  return deliverables;
}

}  // namespace convlab
