// The final submission: the fastest combination, compared with the library.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "reports/comparison/ranking.h"
#include "reports/deliverables/counter_tables.h"
#include "reports/deliverables/ladder_tables.h"
#include "reports/deliverables/profile_tables.h"
#include "reports/deliverables/time_tables.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

// The newest run of each participant's kernel with the most images, and after
// them of ours.
std::vector<const RunRecord*> FinalRuns(const Source& source) {
  std::vector<const RunRecord*> runs =
      ReachedRuns(NewestRuns(source, "final", "gpu"));
  if (runs.empty() || !IsContributed(*runs[0])) runs.clear();
  const RunRecord* ours =
      Find(*source.records, {"final", "gpu", std::nullopt, /*traced=*/false,
                             /*contributed=*/false});
  if (ours != nullptr) runs.push_back(ours);
  return runs;
}

// A variant's name in a row of the run.
Text VariantOf(const RunRecord& record, const ConvolutionRecord& convolution) {
  return VariantText(convolution.variant,
                     record.variants.at(convolution.variant));
}

const RunRecord* TracedFinal(const Source& source) {
  return Find(*source.records, {"final", "gpu", std::nullopt, /*traced=*/true});
}

std::string FinalCommand(const Source& source) {
  return RecordingCommand(source, "final", "--device gpu --repeat 5",
                          absl::StrCat("final-", source.network));
}

// A row for each convolution of a final run beside the library, and their sum.
void AddPeerRows(const RunRecord& record, const RunRecord& ladder,
                 Table& table) {
  double sum = 0, peer_sum = 0;
  bool all = true;
  const size_t convolutions =
      std::min(record.convolutions.size(), ladder.peers.size());
  for (size_t i = 0; i < convolutions; ++i) {
    const ConvolutionRecord& convolution = record.convolutions[i];
    const PeerRecord& peer = ladder.peers[i];
    const double peer_ns = Median(peer.kernel_time_ns);
    const bool measured = !convolution.kernel_time_ns.empty();
    const double ns = measured ? Median(convolution.kernel_time_ns) : 0;
    all &= measured;
    sum += ns;
    peer_sum += peer_ns;
    table.rows.push_back(
        {Count(static_cast<int64_t>(i) + 1), VariantOf(record, convolution),
         record.variants.at(convolution.variant).accuracy_class,
         measured ? Milliseconds(ns) : "–",
         absl::StrCat(peer.library, ", ", peer.algorithm, ", the best of ",
                      peer.plans, " plans, ", peer.accuracy_class),
         Milliseconds(peer_ns), Ratio(peer_ns, ns)});
  }
  table.rows.push_back({"sum", "", "", all ? Milliseconds(sum) : "–", "",
                        Milliseconds(peer_sum),
                        Ratio(peer_sum, all ? sum : 0)});
}

Deliverable FinalOpTimes(const Source& source) {
  Deliverable deliverable = {"Final op times", "final-op-times"};
  std::vector<Block>& blocks = deliverable.blocks;
  const RunRecord* record = FinalRun(source);
  if (record == nullptr) {
    AddMissing(deliverable, "there is no final run on the GPU",
               FinalCommand(source));
    return deliverable;
  }
  Table table = {{{"convolution", false},
                  {"variant", false},
                  {"op time, ms"},
                  {"quartiles, ms"},
                  {"fastest, ms"},
                  {"samples"},
                  {"TFLOP/s"},
                  {"share of the floor"}},
                 {}};
  const auto floor_share = [](const std::optional<double>& floor_ns,
                              double ns) {
    return floor_ns ? absl::StrFormat("%.1f %%", 100 * *floor_ns / ns) : "–";
  };
  for (const RunRecord* run : FinalRuns(source)) {
    for (size_t i = 0; i < run->convolutions.size(); ++i) {
      const ConvolutionRecord& convolution = run->convolutions[i];
      const Spread spread = SpreadOf(convolution.op_time_ns);
      table.rows.push_back(
          {absl::StrFormat("%d: %d × %d × %d, %d filters of %d × %d", i + 1,
                           convolution.channels, convolution.height,
                           convolution.width, convolution.filters,
                           convolution.kernel_size, convolution.kernel_size),
           VariantOf(*run, convolution), Milliseconds(spread.median),
           spread.samples < kSamplesForSpread
               ? "–"
               : absl::StrCat(Milliseconds(spread.low), " – ",
                              Milliseconds(spread.high)),
           Milliseconds(spread.least), Count(spread.samples),
           absl::StrFormat("%.2f", convolution.flops / spread.median * 1e-3),
           floor_share(FloorNs(*run, convolution), spread.median)});
    }
    const double sum = OpTimeSum(run->convolutions);
    table.rows.push_back({"sum",
                          IsContributed(*run) ? VariantsText(*run) : Text(""),
                          Milliseconds(sum), "", "", "", "",
                          floor_share(FloorNs(*run, run->convolutions), sum)});
  }
  blocks.push_back(std::move(table));
  blocks.emplace_back(TimePicture("final-time", *record));
  if (const std::optional<Rates> peaks = DataSheetRates(record->gpu.name)) {
    blocks.push_back(
        Generated(FloorText(*peaks, "the peaks in the GPU's data sheet")));
  }
  for (const RunRecord* run : FinalRuns(source)) {
    blocks.push_back(
        Paragraph{CountText(*run) + " of " + Plural(run->size, "image") +
                  " right. The run: " + Code(CommandText(*run)) + "."});
  }
  for (const auto& [name, variant] : record->variants) {
    blocks.push_back(Generated(DescribeVariant(name, variant)));
  }
  const RunRecord* traced = TracedFinal(source);
  if (traced == nullptr) {
    AddMissing(deliverable, "there is no traced final run",
               TracingCommand(source, "final"));
  } else {
    AddShareList(source, traced->profile->gpu_activities, *traced,
                 "kernels, copies and memsets", deliverable);
    AddTimeline("final-timeline", source, *traced, deliverable);
  }
  return deliverable;
}

Deliverable LibraryComparison(const Source& source) {
  Deliverable deliverable = {"Comparison with cuDNN", "library"};
  const RunRecord* record = FinalRun(source);
  if (record == nullptr) {
    AddMissing(deliverable, "there is no final run on the GPU",
               FinalCommand(source));
    return deliverable;
  }
  const RunRecord* ladder = FindLadder(source, record->size);
  if (ladder == nullptr ||
      ladder->peers.size() != record->convolutions.size()) {
    AddMissing(
        deliverable,
        absl::StrCat("the library's times with ", Plural(record->size, "image"),
                     ", which the ladder's run holds"),
        LadderCommand(source, record->size));
    return deliverable;
  }
  deliverable.blocks.push_back(Paragraph{
      "Kernel times, without what the host adds, of the final run and of the "
      "fastest of the library's algorithms and layouts in the same accuracy "
      "class, which the ladder's run measured on the same GPU."});
  Table table = {{{"convolution"},
                  {"variant", false},
                  {"its class", false},
                  {"kernel time, ms"},
                  {"library", false},
                  {"kernel time, ms"},
                  {"speedup over the library"}},
                 {}};
  for (const RunRecord* run : FinalRuns(source)) {
    if (run->size == ladder->size) AddPeerRows(*run, *ladder, table);
  }
  deliverable.blocks.push_back(std::move(table));
  return deliverable;
}

absl::StatusOr<Deliverable> RankingOfAll(const Source& source) {
  Deliverable deliverable = {"Ranking", "ranking"};
  const RunRecord* record = FinalRun(source);
  RankingOptions options;
  options.network = source.network;
  if (record != nullptr) options.size = record->size;
  if (!source.participants.empty()) {
    ASSIGN_OR_RETURN(const Ranking ranking,
                     RankParticipants(source.participants, options));
    Append(deliverable.blocks, DescribeRanking(ranking, options));
    return deliverable;
  }
  // Only the course has all participants' records; the own entry is known.
  ASSIGN_OR_RETURN(const Ranking ranking,
                   RankParticipants({{"", *source.records}}, options));
  std::vector<Block>& blocks = deliverable.blocks;
  if (ranking.histories[0].entries.empty()) {
    AddMissing(deliverable,
               absl::StrCat("the ranking takes the fastest correct run with ",
                            Plural(options.size, "image"), ", and there is ",
                            ranking.refusals[0].reason),
               FinalCommand(source));
  } else if (ranking.sections.empty()) {
    deliverable.complete = false;
    blocks.push_back(
        Paragraph{Strong("Disqualified:") + " no run counts, because of"});
    List reasons;
    for (const RefusedRun& refusal : ranking.refusals) {
      reasons.items.push_back(Code(refusal.run) + ": " + refusal.reason);
    }
    blocks.push_back(std::move(reasons));
  } else {
    // One entry for each section; the first is the main one.
    for (const RankingSection& section : ranking.sections) {
      const Rank& own = section.ranks[0];
      const bool by_op_time = section.measure == Measure::kOpTime;
      blocks.push_back(Paragraph{
          Text("This submission's entry in class ") + section.accuracy_class +
          " is its fastest correct run, " + Code(own.run) + ", with " +
          Strong(Milliseconds(own.sum.median) + " ms") +
          ", the sum of the medians of its " +
          (by_op_time ? "op times" : "whole operations' times") + ", and " +
          absl::StrFormat("%s of %s right.", Count(own.correct),
                          Plural(options.size, "image"))});
    }
    // Why a run of this milestone is not the entry.
    for (const RefusedRun& refusal : ranking.refusals) {
      if (!absl::StartsWith(refusal.run, "final: ")) continue;
      blocks.push_back(
          Paragraph{Strong("Not counted:") + " " + Code(refusal.run) + ": " +
                    refusal.reason +
                    ". To run it again: " + Code(FinalCommand(source)) + "."});
    }
  }
  blocks.push_back(Paragraph{
      Text("The ranking itself needs all participants' records, a folder "
           "each: ") +
      Code("bazel run //reports:ranking -- DIR...") + " prints it, and " +
      Code("--participants DIR,...") + " puts it here."});
  return deliverable;
}

Deliverable References(const Source& source) {
  Deliverable deliverable = {"References", "references"};
  List list;
  list.is_generated = true;
  list.items = {
      Text("H. Xiao, K. Rasul, R. Vollgraf: Fashion-MNIST: a Novel Image "
           "Dataset "
           "for Benchmarking Machine Learning Algorithms. arXiv:1708.07747, "
           "2017. "
           "The images."),
      Text("D. B. Kirk, W. W. Hwu: Programming Massively Parallel Processors. "
           "The "
           "first kernels, tiling and constant memory."),
      Text("K. Chellapilla, S. Puri, P. Simard: High Performance Convolutional "
           "Neural Networks for Document Processing. IWFHR, 2006. Convolution "
           "as a "
           "matrix product of the unrolled input."),
      Text("S. Chetlur et al.: cuDNN: Efficient Primitives for Deep Learning. "
           "arXiv:1410.0759, 2014. The library, and the product without the "
           "unrolled matrix."),
      Text("M. Mathieu, M. Henaff, Y. LeCun: Fast Training of Convolutional "
           "Networks through FFTs. arXiv:1312.5851, 2013."),
      Text("S. Williams, A. Waterman, D. Patterson: Roofline: An Insightful "
           "Visual "
           "Performance Model for Multicore Architectures. CACM 52(4), 2009."),
  };
  // References to the tools, with their versions from the records.
  std::set<std::string> tools;
  for (const NamedRecord& run : source.records->runs) {
    for (const auto& [name, version] : run.record.gpu.libraries) {
      tools.insert(absl::StrCat(name, " ", version));
    }
    for (const PeerRecord& peer : run.record.peers) tools.insert(peer.library);
  }
  for (const std::string& tool : tools) {
    list.items.emplace_back(
        absl::StrCat("NVIDIA ", tool, ", which the runs used."));
  }
  deliverable.blocks.push_back(std::move(list));
  return deliverable;
}

}  // namespace

const RunRecord* FinalRun(const Source& source) {
  const std::vector<const RunRecord*> runs = FinalRuns(source);
  return runs.empty() ? nullptr : runs[0];
}

absl::StatusOr<Parts> FinalMilestone(const Source& source) {
  Parts parts;
  parts.asked =
      "Three more optimizations, each on its own, and the fastest combination: "
      "its op times, its place among all, and references.";
  std::vector<std::string> names;
  const RunRecord* ladder = FindLadder(source);
  const LadderRun* base = ladder == nullptr ? nullptr : BaseOf(source, *ladder);
  const RunRecord* record = FinalRun(source);
  for (const RunRecord* run : FinalRuns(source)) {
    if (IsContributed(*run) != IsContributed(*record)) continue;
    const double sum = OpTimeSum(run->convolutions);
    Text text = ReachedText(*run);
    if (base != nullptr && base->failure.empty() && run->size == ladder->size) {
      text += " That is " + AsFast(OpTimeSum(base->convolutions) / sum) +
              " as " + Code(base->variant) + ".";
    }
    parts.reached.push_back(std::move(text));
  }
  for (const RunRecord* run : FailedRuns(source, "final")) {
    parts.reached.push_back(FailureText(*run));
  }
  std::vector<Block> speedups;
  if (ladder != nullptr) {
    const LadderRows rows = RowsOf(*ladder);
    const std::vector<ChosenRung> chosen =
        ChosenRungs(source, *ladder, rows, /*is_final=*/true);
    const std::vector<ComparedRow> compared =
        ComparedRows(source, *ladder, rows, chosen);
    if (base != nullptr) names.push_back(base->variant);
    for (const ChosenRung& one : chosen) {
      if (base == nullptr || one.row->run->variant != base->variant) {
        names.push_back(one.row->run->variant);
      }
    }
    parts.picture = {ComparedPicture(source, *ladder, rows, compared)};
    speedups = SpeedupPicture(source, *ladder, compared);
    parts.sections = Optimizations(source, *ladder, chosen);
    for (const int64_t size : MissingSizes(LadderSizes(source))) {
      if (parts.sections.empty()) break;
      AddMissing(parts.sections.front(),
                 absl::StrCat("there is no run of the ladder with ",
                              Plural(size, "image")),
                 LadderCommand(source, size));
    }
    parts.appendix = {AllRungs(*ladder, rows)};
    parts.appendix.push_back(CountersOf(source, names));
  }
  Deliverable op_times = FinalOpTimes(source);
  Append(op_times.blocks, std::move(speedups));
  ASSIGN_OR_RETURN(Deliverable ranking, RankingOfAll(source));
  for (Deliverable section : {std::move(op_times), LibraryComparison(source),
                              std::move(ranking), References(source)}) {
    parts.sections.push_back(std::move(section));
  }
  if (record != nullptr) parts.appendix.push_back(Outputs({record}));
  parts.appendix.push_back(NamesInFull(TracedFinal(source)));
  parts.appendix.push_back(LongestEvents(source, TracedFinal(source)));
  return parts;
}

}  // namespace convlab
