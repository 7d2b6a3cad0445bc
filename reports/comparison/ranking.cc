#include "reports/comparison/ranking.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/accuracy/accuracy.h"
#include "common/files/files.h"
#include "common/status/status.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

// One run, or one variant of a run of the ladder.
struct Candidate {
  const RunRecord* record = nullptr;
  const std::vector<ConvolutionRecord>* convolutions = nullptr;
  int64_t correct = 0;
};

std::vector<Candidate> CandidatesOf(const Records& records,
                                    const RankingOptions& options) {
  std::vector<Candidate> candidates;
  for (const NamedRecord& run : records.runs) {
    const RunRecord& record = run.record;
    // The baseline is the framework's convolution, which no participant wrote.
    if (record.profile.has_value() || record.fuses() ||
        record.network != options.network || record.size != options.size ||
        record.device != options.device || record.milestone == "m1") {
      continue;
    }
    if (record.ladder.empty()) {
      candidates.push_back({&record, &record.convolutions, record.correct});
    }
    for (const LadderRun& rung : record.ladder) {
      if (rung.failure.empty()) {
        candidates.push_back({&record, &rung.convolutions, rung.correct});
      }
    }
  }
  return candidates;
}

// The accuracy classes of its convolutions, each once.
std::string AccuracyOf(const Candidate& candidate) {
  std::set<std::string> classes;
  for (const ConvolutionRecord& convolution : *candidate.convolutions) {
    classes.insert(
        candidate.record->variants.at(convolution.variant).accuracy_class);
  }
  return absl::StrJoin(classes, ", ");
}

// The number of answers that may differ: the largest number that the
// candidate's classes allow.
int64_t Tolerance(const Candidate& candidate) {
  int64_t tolerance = 0;
  for (const ConvolutionRecord& convolution : *candidate.convolutions) {
    const std::optional<AccuracyClass> accuracy = FindAccuracyClass(
        candidate.record->variants.at(convolution.variant).accuracy_class);
    // An unknown class counts as one that rounds differently.
    tolerance = std::max(
        tolerance, MaxChangedAnswers(accuracy.value_or(AccuracyClass::kBf16)));
  }
  return tolerance;
}

// The reason why the run does not count; empty if it does.
std::string WhyWrong(const Candidate& candidate,
                     const RankingOptions& options) {
  std::optional<int64_t> expected = options.correct;
  if (!expected) {
    const auto& metadata = candidate.record->weights_metadata;
    const auto found = metadata.find(absl::StrCat("correct_", options.size));
    int64_t value;
    if (found == metadata.end() || !absl::SimpleAtoi(found->second, &value)) {
      return "its weight file does not say how many answers are right; "
             "--correct does";
    }
    expected = value;
  }
  const int64_t tolerance = Tolerance(candidate);
  if (std::abs(candidate.correct - *expected) <= tolerance) return "";
  return absl::StrCat(Count(candidate.correct), " correct answers, expected ",
                      Count(*expected),
                      tolerance > 0 ? absl::StrCat(" ± ", tolerance) : "");
}

std::string Describe(const Candidate& candidate) {
  return absl::StrCat(candidate.record->milestone, ": ",
                      VariantNames(*candidate.convolutions));
}

// The fastest correct candidate; if there is none, the reason for the fastest
// one.
Rank Best(const Participant& participant, const RankingOptions& options) {
  Rank rank;
  rank.name = participant.name;
  std::vector<Candidate> candidates =
      CandidatesOf(participant.records, options);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return OpTimeSum(*a.convolutions) <
                            OpTimeSum(*b.convolutions);
                   });
  rank.reason = absl::StrCat("no run of ", options.network, " with ",
                             Plural(options.size, "image"), " on the ",
                             absl::AsciiStrToUpper(options.device));
  bool any = false;
  for (const Candidate& candidate : candidates) {
    const std::string wrong = WhyWrong(candidate, options);
    if (any && !wrong.empty()) continue;
    any = true;
    rank.sum_ns = OpTimeSum(*candidate.convolutions);
    rank.run = Describe(candidate);
    rank.correct = candidate.correct;
    rank.accuracy_class = AccuracyOf(candidate);
    rank.reason = wrong;
    if (wrong.empty()) break;
  }
  return rank;
}

absl::Status CheckSameDevice(const std::vector<Participant>& participants,
                             const RankingOptions& options) {
  const Participant* first = nullptr;
  std::string device;
  for (const Participant& participant : participants) {
    for (const Candidate& candidate :
         CandidatesOf(participant.records, options)) {
      const RunRecord& record = *candidate.record;
      const std::string name =
          options.device == "gpu" ? record.gpu.name : record.host.cpu;
      if (first == nullptr) {
        first = &participant;
        device = name;
      } else if (name != device) {
        return absl::InvalidArgumentError(absl::StrCat(
            first->name, " has a run on ", device, " and ", participant.name,
            " one on ", name, "; --any_device ranks them all the same"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const std::vector<Participant>& participants) {
  std::map<std::string, std::string> folders;
  for (const Participant& participant : participants) {
    const auto [first, is_new] =
        folders.emplace(participant.name, participant.records.folder);
    if (is_new) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(first->second, " and ", participant.records.folder,
                     " would both be ranked as '", participant.name,
                     "': a folder's name is the participant's"));
  }
  return absl::OkStatus();
}

double MedianOf(const std::vector<Rank>& sorted) {
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1
             ? sorted[middle].sum_ns
             : (sorted[middle - 1].sum_ns + sorted[middle].sum_ns) / 2;
}

}  // namespace

double Points(double deviations) {
  return std::clamp(80 - 10 * deviations, 0.0, 100.0);
}

absl::StatusOr<Participant> ReadParticipant(const std::string& folder) {
  ASSIGN_OR_RETURN(Records records, ReadRecords(folder, ""));
  // The name of "." and of paths with a final slash, too.
  const std::filesystem::path whole =
      std::filesystem::absolute(UserPath(folder) + "/").lexically_normal();
  return Participant{whole.parent_path().filename().string(),
                     std::move(records)};
}

absl::StatusOr<Ranking> RankParticipants(
    const std::vector<Participant>& participants,
    const RankingOptions& options) {
  RETURN_IF_ERROR(CheckNames(participants));
  if (!options.any_device) {
    RETURN_IF_ERROR(CheckSameDevice(participants, options));
  }
  Ranking ranking;
  std::vector<Rank> disqualified;
  for (const Participant& participant : participants) {
    Rank rank = Best(participant, options);
    (rank.reason.empty() ? ranking.ranks : disqualified)
        .push_back(std::move(rank));
  }
  std::vector<Rank>& ranks = ranking.ranks;
  std::stable_sort(
      ranks.begin(), ranks.end(),
      [](const Rank& a, const Rank& b) { return a.sum_ns < b.sum_ns; });
  if (!ranks.empty()) {
    ranking.median_ns = MedianOf(ranks);
    const double count = static_cast<double>(ranks.size());
    double mean = 0, squares = 0;
    for (const Rank& rank : ranks) mean += rank.sum_ns / count;
    for (const Rank& rank : ranks) {
      squares += (rank.sum_ns - mean) * (rank.sum_ns - mean) / count;
    }
    ranking.deviation_ns = std::sqrt(squares);
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    Rank& rank = ranks[i];
    const bool equal = i > 0 && ranks[i - 1].sum_ns == rank.sum_ns;
    rank.place = equal ? ranks[i - 1].place : static_cast<int>(i) + 1;
    rank.deviations =
        ranking.deviation_ns > 0
            ? (rank.sum_ns - ranking.median_ns) / ranking.deviation_ns
            : 0;
    rank.points = Points(rank.deviations);
  }
  for (Rank& rank : disqualified) ranks.push_back(std::move(rank));
  return ranking;
}

std::vector<Block> DescribeRanking(const Ranking& ranking,
                                   const RankingOptions& options) {
  Table table = {{{"rank"},
                  {"name", false},
                  {"sum of op times, ms"},
                  {"run", false},
                  {"class", false},
                  {"correct"},
                  {"deviations from the median"},
                  {"points"}},
                 {}};
  Table disqualified = {
      {{"disqualified", false}, {"run", false}, {"reason", false}}, {}};
  for (const Rank& rank : ranking.ranks) {
    if (rank.place == 0) {
      disqualified.rows.push_back(
          {rank.name, rank.run.empty() ? Text("–") : Code(rank.run),
           rank.reason});
      continue;
    }
    table.rows.push_back({Count(rank.place), rank.name,
                          Milliseconds(rank.sum_ns), Code(rank.run),
                          rank.accuracy_class, Count(rank.correct),
                          absl::StrFormat("%+.2f", rank.deviations),
                          absl::StrFormat("%.1f", rank.points)});
  }
  std::vector<Block> blocks;
  blocks.push_back(Paragraph{
      absl::StrCat(options.network, ", ", Plural(options.size, "image"),
                   ": each participant's best correct run by the sum of the "
                   "medians of its op "
                   "times.")});
  if (!table.rows.empty()) {
    blocks.push_back(std::move(table));
    blocks.push_back(Paragraph{
        absl::StrFormat("Median %s ms, standard deviation %s ms. %s",
                        Milliseconds(ranking.median_ns),
                        Milliseconds(ranking.deviation_ns), kPointsRule)});
  }
  if (!disqualified.rows.empty()) blocks.push_back(std::move(disqualified));
  return blocks;
}

}  // namespace convlab
