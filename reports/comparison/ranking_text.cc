#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "reports/comparison/ranking.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

Table TableOf(const RankingSection& section) {
  Table table = {
      {{"rank"},
       {"name", false},
       {section.measure == Measure::kOpTime ? "sum of op times, ms"
                                            : "sum of whole times, ms"},
       {"quartiles"},
       {"samples"},
       {"run", false},
       {"class", false},
       {"correct"},
       {"deviations from the median"},
       {"points"}},
      {}};
  for (const Rank& rank : section.ranks) {
    const Spread& sum = rank.sum;
    table.rows.push_back(
        {Count(rank.place), rank.name, Milliseconds(sum.median),
         sum.samples < kSamplesForSpread
             ? "–"
             : absl::StrCat(Milliseconds(sum.low), " – ",
                            Milliseconds(sum.high)),
         Count(static_cast<int64_t>(sum.samples)), Code(rank.run),
         rank.accuracy_class, Count(rank.correct),
         absl::StrFormat("%+.2f", rank.deviations),
         absl::StrFormat("%.1f", rank.points)});
  }
  return table;
}

// Whether the table shows a sum that does not lie between its quartiles.
bool HasSumOutsideOfQuartiles(const RankingSection& section) {
  return absl::c_any_of(section.ranks, [](const Rank& rank) {
    return rank.sum.samples >= kSamplesForSpread &&
           (rank.sum.median < rank.sum.low || rank.sum.median > rank.sum.high);
  });
}

}  // namespace

std::vector<Block> DescribeRanking(const Ranking& ranking,
                                   const RankingOptions& options) {
  std::vector<Block> blocks;
  blocks.push_back(Paragraph{absl::StrCat(
      options.network, ", ", Plural(options.size, "image"),
      ": each participant's best correct run of each accuracy class, by the "
      "sum of the medians of its op times.",
      options.pool ? " All runs of a kernel are taken together." : "")});
  for (const RankingSection& section : ranking.sections) {
    blocks.push_back(Paragraph{
        Strong(absl::StrCat("Class ", section.accuracy_class)) +
        (section.measure == Measure::kOpTime
             ? ", by op time."
             : ", by the time of the whole operation, copies included: kernels "
               "whose op time does not count because their work is done "
               "elsewhere.")});
    blocks.push_back(TableOf(section));
    if (HasSumOutsideOfQuartiles(section)) {
      blocks.push_back(Paragraph{
          "The sum is that of the convolutions' medians; the quartiles are "
          "those of the sums of single repetitions. A sum may lie outside of "
          "its quartiles where the convolutions' times vary apart."});
    }
    // One participant's sum is the median, and deviates from nothing.
    if (section.ranks.size() > 1) {
      blocks.push_back(
          Paragraph{absl::StrFormat("Median %s ms, standard deviation %s ms.",
                                    Milliseconds(section.median_ns),
                                    Milliseconds(section.deviation_ns))});
    }
  }
  if (!ranking.sections.empty()) {
    blocks.push_back(Paragraph{absl::StrCat(kTieRule, " ", kPointsRule)});
  }
  if (ranking.refusals.empty()) return blocks;
  Table refused = {{{"not ranked", false}, {"run", false}, {"reason", false}},
                   {}};
  for (const RefusedRun& refusal : ranking.refusals) {
    refused.rows.push_back({refusal.name,
                            refusal.run.empty() ? Text("–") : Code(refusal.run),
                            refusal.reason});
  }
  blocks.push_back(std::move(refused));
  return blocks;
}

}  // namespace convlab
