#include "reports/comparison/ranking.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/accuracy/accuracy.h"
#include "common/files/files.h"
#include "common/status/status.h"

namespace convlab {
namespace {

namespace fs = std::filesystem;

// A participant with the runs that may be ranked.
struct Entrant {
  const Participant* participant = nullptr;
  std::vector<Candidate> candidates;
};

absl::Status CheckSameDevice(const std::vector<Entrant>& entrants,
                             const RankingOptions& options) {
  const Participant* first = nullptr;
  std::string device;
  for (const Entrant& entrant : entrants) {
    for (const Candidate& candidate : entrant.candidates) {
      const RunRecord& record = candidate.record();
      const std::string name =
          options.device == "gpu" ? record.gpu.name : record.host.cpu;
      if (first == nullptr) {
        first = entrant.participant;
        device = name;
      } else if (name != device) {
        return absl::InvalidArgumentError(
            absl::StrCat(first->name, " has a run on ", device, " and ",
                         entrant.participant->name, " one on ", name,
                         "; --any_device ranks them all the same"));
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

// Two runs never have equal samples, which are in nanoseconds: of several
// participants' such runs the earliest stays. One that is refused anyway, as an
// altered record is, takes nothing from the others.
void RefuseCopies(std::vector<Entrant>& entrants) {
  struct Original {
    std::string started;
    const Participant* owner = nullptr;
  };
  // Without samples, as of kernels that crashed, nothing can be told.
  const auto key = [](const Candidate& candidate) -> std::string {
    if (candidate.convolutions.empty()) return "";
    std::string samples = candidate.digest;
    for (const ConvolutionRecord& one : candidate.convolutions) {
      absl::StrAppend(&samples, "|",
                      absl::StrJoin(one.*candidate.samples(), ","));
    }
    return samples;
  };
  std::map<std::string, Original> originals;
  for (const Entrant& entrant : entrants) {
    for (const Candidate& candidate : entrant.candidates) {
      if (key(candidate).empty() || !candidate.refusal.empty()) continue;
      const std::string& started = candidate.record().started;
      Original& original = originals[key(candidate)];
      if (original.owner == nullptr || started < original.started) {
        original = {started, entrant.participant};
      }
    }
  }
  for (Entrant& entrant : entrants) {
    for (Candidate& candidate : entrant.candidates) {
      const Participant* owner = originals[key(candidate)].owner;
      if (owner == nullptr || owner == entrant.participant) continue;
      candidate.refusal.push_back(
          absl::StrCat("a copy of a run of ", owner->name,
                       ": the same samples to the nanosecond"));
    }
  }
}

// Moves the samples of runs of one kernel into the first of them.
void Pool(std::vector<Candidate>& candidates) {
  std::vector<Candidate> pooled;
  for (Candidate& candidate : candidates) {
    const auto same =
        std::find_if(pooled.begin(), pooled.end(), [&](const Candidate& other) {
          return candidate.refusal.empty() && other.refusal.empty() &&
                 other.Name() == candidate.Name() &&
                 other.digest == candidate.digest &&
                 other.measure == candidate.measure &&
                 other.convolutions.size() == candidate.convolutions.size();
        });
    if (same == pooled.end()) {
      pooled.push_back(std::move(candidate));
      continue;
    }
    for (size_t i = 0; i < same->convolutions.size(); ++i) {
      const auto samples = candidate.samples();
      std::vector<int64_t>& all = same->convolutions[i].*samples;
      const std::vector<int64_t>& more = candidate.convolutions[i].*samples;
      all.insert(all.end(), more.begin(), more.end());
    }
  }
  candidates = std::move(pooled);
}

std::string FileName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// A row for each file, folder, or group of runs of one file that are refused
// for the same reasons.
void AddRefusals(const Entrant& entrant, const RankingOptions& options,
                 std::vector<RefusedRun>& refusals) {
  const Participant& participant = *entrant.participant;
  if (!participant.failure.empty()) {
    refusals.push_back({participant.name, "", participant.failure});
    return;
  }
  for (const BrokenFile& file : participant.records.broken) {
    refusals.push_back({participant.name, FileName(file.path), file.reason});
  }
  std::vector<std::tuple<std::string, std::string, int>> groups;
  for (const Candidate& candidate : entrant.candidates) {
    if (candidate.refusal.empty()) continue;
    const std::string reason = absl::StrJoin(candidate.refusal, "; ");
    const std::string where = absl::StrCat(candidate.run->path, "\n", reason);
    const auto group = std::find_if(
        groups.begin(), groups.end(),
        [&](const auto& one) { return std::get<0>(one) == where; });
    if (group != groups.end()) {
      ++std::get<2>(*group);
      continue;
    }
    groups.emplace_back(where, candidate.Name(), 0);
  }
  for (const auto& [where, run, others] : groups) {
    refusals.push_back(
        {participant.name,
         others == 0 ? run
                     : absl::StrCat(run, " and ", Plural(others, "other")),
         where.substr(where.find('\n') + 1)});
  }
  if (entrant.candidates.empty() && participant.records.broken.empty()) {
    refusals.push_back({participant.name, "",
                        absl::StrCat("no run of ", options.network, " with ",
                                     Plural(options.size, "image"), " on the ",
                                     absl::AsciiStrToUpper(options.device))});
  }
}

History HistoryOf(const Entrant& entrant) {
  History history;
  history.name = entrant.participant->name;
  history.reports = entrant.participant->reports;
  std::map<const NamedRecord*, History::Entry> runs;
  for (const Candidate& candidate : entrant.candidates) {
    const auto samples = candidate.samples();
    const bool timed = absl::c_none_of(
        candidate.convolutions,
        [&](const ConvolutionRecord& one) { return (one.*samples).empty(); });
    if (!timed || candidate.convolutions.empty()) continue;
    const History::Entry entry = {
        candidate.record().started,
        candidate.Name(),
        candidate.accuracy_class,
        candidate.measure,
        SpreadOfSum(candidate.convolutions, samples).median,
        candidate.refusal.empty()};
    const auto [run, is_new] = runs.emplace(candidate.run, entry);
    if (!is_new && std::pair(!entry.counts, entry.sum_ns) <
                       std::pair(!run->second.counts, run->second.sum_ns)) {
      run->second = entry;
    }
  }
  for (auto& [run, entry] : runs) history.entries.push_back(std::move(entry));
  std::stable_sort(history.entries.begin(), history.entries.end(),
                   [](const History::Entry& a, const History::Entry& b) {
                     return a.started < b.started;
                   });
  return history;
}

double MedianOf(const std::vector<Rank>& sorted) {
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1
             ? sorted[middle].sum.median
             : (sorted[middle - 1].sum.median + sorted[middle].sum.median) / 2;
}

// Sorts the ranks and gives places and points.
void Place(RankingSection& section) {
  std::vector<Rank>& ranks = section.ranks;
  std::stable_sort(
      ranks.begin(), ranks.end(),
      [](const Rank& a, const Rank& b) { return a.sum.median < b.sum.median; });
  section.median_ns = MedianOf(ranks);
  const double count = static_cast<double>(ranks.size());
  double mean = 0, squares = 0;
  for (const Rank& rank : ranks) mean += rank.sum.median / count;
  for (const Rank& rank : ranks) {
    squares += (rank.sum.median - mean) * (rank.sum.median - mean) / count;
  }
  section.deviation_ns = std::sqrt(squares);
  const Rank* first = nullptr;  // of the place
  for (size_t i = 0; i < ranks.size(); ++i) {
    Rank& rank = ranks[i];
    const bool tie = first != nullptr && rank.sum.low <= first->sum.high;
    rank.place = tie ? first->place : static_cast<int>(i) + 1;
    if (!tie) first = &rank;
    rank.deviations =
        section.deviation_ns > 0
            ? (rank.sum.median - section.median_ns) / section.deviation_ns
            : 0;
    rank.points = Points(rank.deviations);
  }
}

std::vector<RankingSection> SectionsOf(const std::vector<Entrant>& entrants) {
  // The order of classes is that of the enumeration, the tightest first.
  std::map<std::pair<Measure, AccuracyClass>, RankingSection> sections;
  for (const Entrant& entrant : entrants) {
    std::map<std::pair<Measure, AccuracyClass>, Rank> best;
    for (const Candidate& candidate : entrant.candidates) {
      if (!candidate.refusal.empty()) continue;
      Rank rank;
      rank.name = entrant.participant->name;
      rank.sum = SpreadOfSum(candidate.convolutions, candidate.samples());
      if (rank.sum.samples == 0) rank.sum.low = rank.sum.high = rank.sum.median;
      rank.run = candidate.Name();
      rank.accuracy_class = candidate.accuracy_class;
      rank.correct = candidate.rung != nullptr ? candidate.rung->correct
                                               : candidate.record().correct;
      rank.digest = candidate.digest;
      const auto [place, is_new] =
          best.emplace(std::pair(candidate.measure,
                                 *FindAccuracyClass(candidate.accuracy_class)),
                       rank);
      if (!is_new && rank.sum.median < place->second.sum.median) {
        place->second = std::move(rank);
      }
    }
    for (auto& [key, rank] : best) {
      RankingSection& section = sections[key];
      section.measure = key.first;
      section.accuracy_class = rank.accuracy_class;
      section.ranks.push_back(std::move(rank));
    }
  }
  std::vector<RankingSection> sorted;
  for (auto& [key, section] : sections) {
    Place(section);
    sorted.push_back(std::move(section));
  }
  return sorted;
}

}  // namespace

double Points(double deviations) {
  return std::clamp(80 - 10 * deviations, 0.0, 100.0);
}

absl::StatusOr<Participant> ReadParticipant(const std::string& folder,
                                            const std::string& seal_key) {
  Participant participant;
  // The name of "." and of paths with a final slash, too.
  const fs::path whole =
      fs::absolute(UserPath(folder) + "/").lexically_normal();
  participant.name = whole.parent_path().filename().string();
  const std::vector<std::string> folders = FoldersWithRecords(folder);
  if (folders.size() > 1) {
    participant.records.folder = folder;
    participant.failure =
        absl::StrCat(folder, " holds no records itself, but its folders ",
                     absl::StrJoin(folders, ", "),
                     " do: if each is a participant's, give each; if they are "
                     "one's, put the records into one folder");
    return participant;
  }
  ReadOptions options;
  options.seal_key = seal_key;
  options.keep_broken = true;
  absl::StatusOr<Records> records = ReadRecords(folder, options);
  if (records.ok()) {
    participant.records = *std::move(records);
  } else if (ExitStatus(records.status()) == 1) {
    return records.status();
  } else {
    participant.records.folder = folder;
    participant.failure = std::string(records.status().message());
  }
  for (const char* name :
       {"submission.html", "submission.pdf", "submission.md"}) {
    std::error_code error;
    const fs::path report = whole / name;
    if (fs::is_regular_file(report, error)) {
      participant.reports.push_back(report.string());
    }
  }
  return participant;
}

absl::StatusOr<Ranking> RankParticipants(
    const std::vector<Participant>& participants,
    const RankingOptions& options) {
  RETURN_IF_ERROR(CheckNames(participants));
  std::vector<Entrant> entrants;
  entrants.reserve(participants.size());
  for (const Participant& participant : participants) {
    entrants.push_back(
        {&participant, CandidatesOf(participant.records, options)});
  }
  if (!options.any_device) RETURN_IF_ERROR(CheckSameDevice(entrants, options));
  RefuseCopies(entrants);
  Ranking ranking;
  for (Entrant& entrant : entrants) {
    ranking.histories.push_back(HistoryOf(entrant));
    AddRefusals(entrant, options, ranking.refusals);
    if (options.pool) Pool(entrant.candidates);
  }
  ranking.sections = SectionsOf(entrants);
  return ranking;
}

}  // namespace convlab
