// The optimizations of milestone 4 and of the final report, each on its own:
// the course's questions as headings, and below them what was measured.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/statistics.h"
#include "reports/deliverables/counter_tables.h"
#include "reports/deliverables/ladder_tables.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

constexpr char kWhat[] = "What is it?", kWhy[] = "Why should it help?",
               kTimes[] = "What are its op times at three sizes?",
               kProfile[] = "What does the profiler show?",
               kHelped[] = "Did it help?",
               kReason[] = "Why did it, or why not?";

std::string OpTimes(const LadderRun& run) {
  std::vector<double> times;
  for (const ConvolutionRecord& convolution : run.convolutions) {
    times.push_back(Median(convolution.op_time_ns));
  }
  return MillisecondsOf(times);
}

// Op times at every size, compared with those of `before`.
Table SizesTable(const Source& source, const std::string& variant,
                 const LadderRun* before) {
  Table table = {{{"images"}, {"op times, ms"}, {"sum, ms"}}, {}};
  if (before != nullptr) {
    table.columns.push_back({Code(before->variant) + ", ms"});
    table.columns.push_back({"sum, ms"});
    table.columns.push_back({"speedup"});
    table.columns.push_back({"the difference is", false});
  }
  table.columns.push_back({"correct"});
  for (const int64_t size : LadderSizes(source)) {
    const RunRecord* ladder = FindLadder(source, size);
    const LadderRun* run =
        ladder == nullptr ? nullptr : RunOf(*ladder, variant);
    if (run == nullptr) continue;  // explained once, above the sections
    std::vector<Text>& row = table.rows.emplace_back();
    row.emplace_back(Count(size));
    if (!run->failure.empty()) {
      row.emplace_back(run->failure);
      row.resize(table.columns.size(), "–");
      continue;
    }
    row.emplace_back(OpTimes(*run));
    row.emplace_back(Milliseconds(OpTimeSum(run->convolutions)));
    const LadderRun* other =
        before == nullptr ? nullptr : RunOf(*ladder, before->variant);
    if (other != nullptr && other->failure.empty()) {
      row.emplace_back(OpTimes(*other));
      row.emplace_back(Milliseconds(OpTimeSum(other->convolutions)));
      row.emplace_back(
          Ratio(OpTimeSum(other->convolutions), OpTimeSum(run->convolutions)));
      row.emplace_back(Name(Compare(SpreadOfSum(run->convolutions),
                                    SpreadOfSum(other->convolutions))));
    }
    row.resize(table.columns.size() - 1, "–");
    row.push_back(CountText(run->correct, ExpectedCorrect(*ladder),
                            {ladder->variants.at(variant).accuracy_class}));
  }
  return table;
}

// Whether the variant helped, compared with `before`.
std::string Verdict(const RunRecord& ladder, const LadderRow& row,
                    const LadderRun* before) {
  if (before == nullptr) {
    return "It is the base, which the others are compared with.";
  }
  const double now = row.times->sum_ns;
  const double then = OpTimeSum(before->convolutions);
  const Difference difference = Compare(SpreadOfSum(row.run->convolutions),
                                        SpreadOfSum(before->convolutions));
  return absl::StrCat(
      difference == Difference::kWithinSpread
          ? "It made no difference beyond the spread"
      : now < then ? "It helped"
                   : "It did not help",
      " at ", Plural(ladder.size, "image"), ": the op times' sum is ",
      Milliseconds(now), " ms, ", before->variant, " has ", Milliseconds(then),
      " ms, so it is ", AsFast(then / now), " (", Name(difference), ").");
}

// What a contributed kernel is and what the judge found.
void AddVerdict(const VariantRecord& variant, std::vector<Block>& blocks) {
  const VerificationRecord& found = *variant.verification;
  std::string text = absl::StrCat(
      "Interface: ", found.kernel->kernel_interface, ". The judge calls it ",
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
  blocks.push_back(Paragraph{std::move(text)});
  if (!found.reason.empty()) blocks.push_back(Verbatim{found.reason});
}

// What hardware counters said of a contributed kernel when it was judged.
void AddBound(const VariantRecord& variant, std::vector<Block>& blocks) {
  const std::vector<std::string>& bound = variant.verification->kernel->bound;
  if (bound.empty()) return;
  blocks.push_back(
      Paragraph{"Read by ncu on the layer with the most work, with at most 500 "
                "images:"});
  blocks.push_back(Verbatim{bound});
}

// A contributed kernel's place among the rungs of its class.
std::string PlaceOf(const RunRecord& ladder, const LadderRow& kernel) {
  int slower = 0, rungs = 0;
  for (const LadderRow& row : RowsOf(ladder).rows) {
    if (!row.times || row.is_contributed ||
        row.variant->accuracy_class != kernel.variant->accuracy_class) {
      continue;
    }
    ++rungs;
    if (row.times->sum_ns > kernel.times->sum_ns) ++slower;
  }
  return absl::StrFormat(
      "At %s its op times' sum is %s ms: faster than %d of the %d rungs of "
      "class %s.",
      Plural(ladder.size, "image"), Milliseconds(kernel.times->sum_ns), slower,
      rungs, kernel.variant->accuracy_class);
}

// The rate that it reaches, and its share of the floor.
std::string RateOf(const LadderRow& row) {
  std::string text =
      absl::StrFormat("%.2f TFLOP/s", row.flops / row.times->sum_ns * 1e-3);
  if (row.floor_share) {
    absl::StrAppendFormat(&text, ", %.1f %% of the floor",
                          100 * *row.floor_share);
  }
  return text;
}

}  // namespace

std::string AsFast(double ratio) {
  return ratio > 1 ? absl::StrFormat("%.2f times as fast", ratio)
                   : absl::StrFormat("%.2f times as slow", 1 / ratio);
}

std::vector<Deliverable> Optimizations(const Source& source,
                                       const RunRecord& ladder,
                                       const std::vector<ChosenRung>& chosen) {
  std::vector<Deliverable> sections;
  for (const ChosenRung& one : chosen) {
    const LadderRow& row = *one.row;
    const LadderRun& run = *row.run;
    const VariantRecord& variant = *row.variant;
    Deliverable& section = sections.emplace_back();
    section.title = absl::StrCat(
        row.is_contributed ? "Contributed kernel: " : "Optimization: ",
        run.variant);
    section.id = absl::StrCat("optimization-", sections.size());
    std::vector<Block>& blocks = section.blocks;
    const auto ask = [&](const char* question) {
      blocks.push_back(Heading{3, question});
    };
    ask(kWhat);
    if (row.is_contributed) AddVerdict(variant, blocks);
    if (!variant.summary.empty()) blocks.push_back(Generated(variant.summary));
    ask(kWhy);
    if (!variant.reason.empty()) blocks.push_back(Generated(variant.reason));
    ask(kTimes);
    if (!row.times) {
      blocks.push_back(
          Paragraph{Strong("It was not timed:") + " " + run.failure + "."});
      for (const char* question : {kProfile, kHelped, kReason}) ask(question);
      continue;
    }
    blocks.emplace_back(SizesTable(source, run.variant, one.before));
    ask(kProfile);
    if (row.is_contributed) AddBound(variant, blocks);
    const bool is_counted = AddCounters(source, run.variant, one.before,
                                        row.is_contributed, section);
    if (is_counted && one.before == nullptr && source.has_appendix) {
      blocks.push_back(Paragraph{
          AppendixNote(source, "Its kernels: ", "the counters", "counters")});
    }
    ask(kHelped);
    blocks.push_back(Generated(absl::StrCat(Verdict(ladder, row, one.before),
                                            " It reaches ", RateOf(row), ".")));
    if (row.is_contributed) {
      blocks.push_back(Generated(PlaceOf(ladder, row)));
    }
    ask(kReason);
    Text reason = BoundText(source, run.variant);
    if (one.before != nullptr &&
        row.times->sum_ns >= OpTimeSum(one.before->convolutions)) {
      const std::string why = WhyNotFaster(source, run, *one.before);
      if (!why.empty()) reason += (reason.empty() ? "" : " ") + why;
    }
    if (!reason.empty()) blocks.push_back(Generated(std::move(reason)));
  }
  return sections;
}

}  // namespace convlab
