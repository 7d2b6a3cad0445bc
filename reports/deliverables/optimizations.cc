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

// What a contributed kernel is and what the judge found.
void AddVerdict(const VariantRecord& variant, std::vector<Block>& blocks) {
  const VerificationRecord& found = *variant.verification;
  std::string text = absl::StrCat(
      " Interface: ", found.kernel->kernel_interface, ". The judge calls it ",
      found.outcome, " on ", found.problems_right, " of ",
      Plural(found.problems_tried, "problem"), ", with a relative error of ",
      absl::StrFormat("%.0e", found.relative_error), ", class ",
      found.accuracy_class,
      ". Protection: ", found.protection.empty() ? "none" : found.protection,
      ".");
  if (!found.op_time_counts) {
    absl::StrAppend(&text, " Its op time does not count: ", found.op_time_note,
                    ".");
  }
  blocks.push_back(Paragraph{Strong("What was found.") + " " + text.substr(1)});
  if (found.reason.empty()) return;
  blocks.push_back(Verbatim{found.reason});
}

// Places a contributed kernel among the rungs: beside the first, the fastest of
// its class, and the library.
void AddPlace(const RunRecord& ladder, const LadderRows& rows,
              const LadderRow& kernel, std::vector<Block>& blocks) {
  Table table = {{{"beside", false},
                  {"class", false},
                  {"sum, ms"},
                  {"this kernel's speedup over it"},
                  {"the difference is", false}},
                 {}};
  const LadderRow* first = nullptr;
  const LadderRow* fastest = nullptr;
  int slower = 0, rungs = 0;
  for (const LadderRow& row : rows.rows) {
    if (!row.times || row.is_contributed) continue;
    if (first == nullptr) first = &row;
    if (row.variant->accuracy_class != kernel.variant->accuracy_class) continue;
    ++rungs;
    if (row.times->sum_ns > kernel.times->sum_ns) ++slower;
    if (fastest == nullptr || row.times->sum_ns < fastest->times->sum_ns) {
      fastest = &row;
    }
  }
  const auto add = [&](const LadderRow* row, const char* what) {
    if (row == nullptr) return;
    table.rows.push_back({Code(row->run->variant) + what,
                          row->variant->accuracy_class,
                          Milliseconds(row->times->sum_ns),
                          Ratio(row->times->sum_ns, kernel.times->sum_ns),
                          Name(Compare(SpreadOfSum(kernel.run->convolutions),
                                       SpreadOfSum(row->run->convolutions)))});
  };
  add(first, ", the first rung");
  if (fastest != first) add(fastest, ", the fastest rung of its class");
  if (rows.library) {
    table.rows.push_back(
        {rows.library->first_layer->library + ", kernel time",
         rows.library->first_layer->accuracy_class,
         Milliseconds(rows.library->times.sum_ns),
         Ratio(rows.library->times.sum_ns, kernel.times->sum_ns), "–"});
  }
  blocks.push_back(Paragraph{
      Strong("Its place.") +
      absl::StrFormat(" At %s its op times' sum is %s ms: faster than %d of "
                      "the %d rungs of class %s.",
                      Plural(ladder.size, "image"),
                      Milliseconds(kernel.times->sum_ns), slower, rungs,
                      kernel.variant->accuracy_class)});
  blocks.push_back(std::move(table));
}

// The section of one contributed kernel.
Deliverable KernelSection(const Source& source, const RunRecord& ladder,
                          const LadderRows& rows, const LadderRow& row) {
  const LadderRun& run = *row.run;
  Deliverable deliverable = {absl::StrCat("Contributed kernel: ", run.variant),
                             {}};
  AddVerdict(*row.variant, deliverable.blocks);
  if (!row.times) {
    deliverable.blocks.push_back(
        Paragraph{Strong("It was not timed.") + " " + run.failure});
    return deliverable;
  }
  AddPlace(ladder, rows, row, deliverable.blocks);
  std::string rates =
      absl::StrFormat("%.2f TFLOP/s", row.flops / row.times->sum_ns * 1e-3);
  if (row.floor_share) {
    absl::StrAppendFormat(&rates, ", %.1f %% of the floor",
                          100 * *row.floor_share);
  }
  deliverable.blocks.push_back(
      Paragraph{Strong("Results.") + " " + rates + "."});
  AddSizes(source, run.variant, /*before=*/nullptr, deliverable);
  // Counters of it are read by hand; those that are there are shown.
  if (source.records->counters.count(run.variant) > 0) {
    AddCounters(source, run.variant, /*before=*/nullptr, deliverable);
  }
  return deliverable;
}

}  // namespace

std::vector<Deliverable> Optimizations(const Source& source) {
  std::vector<Deliverable> deliverables;
  const RunRecord* ladder = FindLadder(source);
  if (ladder == nullptr) return deliverables;
  const LadderRows rows = RowsOf(*ladder);
  const int last_rung = rows.rows.back().variant->rung;
  for (const LadderRow& row : rows.rows) {
    const LadderRun& run = *row.run;
    if (row.is_contributed) {
      deliverables.push_back(KernelSection(source, *ladder, rows, row));
      continue;
    }
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
        variant.rung, last_rung, variant.accuracy_class, run.relative_error,
        row.flops / row.times->sum_ns * 1e-3);
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
