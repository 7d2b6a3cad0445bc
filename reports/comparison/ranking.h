// The course's ranking: each participant's best correct run by the sum of its
// op times, for each accuracy class. Runs that cannot be believed are refused
// with their reasons.
#ifndef REPORTS_COMPARISON_RANKING_H_
#define REPORTS_COMPARISON_RANKING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/comparison/candidates.h"
#include "reports/document/document.h"
#include "reports/quantities.h"
#include "reports/records/records.h"

namespace convlab {

struct Rank {
  std::string name;
  int place = 0;    // from 1; those who tie share it
  Spread sum;       // over the convolutions
  std::string run;  // milestone and variants
  std::string accuracy_class;
  int64_t correct = 0;
  std::string digest;     // of a contributed kernel's source; or empty
  double deviations = 0;  // standard deviations slower than the median
  double points = 0;
};

// Those whose times can be compared.
struct RankingSection {
  Measure measure = Measure::kOpTime;
  std::string accuracy_class;
  std::vector<Rank> ranks;  // the best first
  double median_ns = 0;
  double deviation_ns = 0;
};

// A run, or several of one file, that does not count.
struct RefusedRun {
  std::string name;  // the participant
  std::string run;   // "m3: naive"; of several "m4: naive and 3 others"; a
                     // file or a folder; or empty
  std::string reason;
};

// A participant's runs, in the order in which they began. Of a run of the
// ladder the fastest variant that counts, or the fastest.
struct History {
  struct Entry {
    std::string started;
    std::string run;
    std::string accuracy_class;
    Measure measure = Measure::kOpTime;
    double sum_ns = 0;
    bool counts = false;
  };
  std::string name;
  std::vector<Entry> entries;
  std::vector<std::string> reports;  // paths
};

struct Ranking {
  std::vector<RankingSection> sections;  // op times first; tight classes first
  std::vector<RefusedRun> refusals;
  std::vector<History> histories;
};

// 80 points at the median of the sums, 10 more or fewer for each standard
// deviation that a sum is below or above it, within 0 and 100. The standard
// deviation is the root of the mean squared distance from the mean, over all
// who are ranked in the section.
double Points(double deviations);
inline constexpr char kPointsRule[] =
    "80 points at the median, 10 more for each standard deviation below it and "
    "10 fewer for each above, within 0 and 100; none without a correct run.";
inline constexpr char kTieRule[] =
    "Runs whose middle halves of the samples (first to third quartile) overlap "
    "that of the first of a place share the place.";

// Reads the records below `folder`, which gives the participant's name. What
// cannot be read is told in the participant's `failure` or in its records'
// `broken`. It is a failure, too, if the folder holds no records itself, but
// several of its folders do: those look like participants.
absl::StatusOr<Participant> ReadParticipant(const std::string& folder,
                                            const std::string& seal_key);

// Ranks the best untraced run of each participant that counts in each section.
// InvalidArgument if the runs are on different GPUs (or CPUs), unless that is
// allowed, or if two participants have the same name.
absl::StatusOr<Ranking> RankParticipants(
    const std::vector<Participant>& participants,
    const RankingOptions& options);

std::vector<Block> DescribeRanking(const Ranking& ranking,
                                   const RankingOptions& options);

// The same as a page in HTML, with each participant's history and with links,
// relative to `folder`, to the reports of those who have some.
std::string RankingPage(const Ranking& ranking, const RankingOptions& options,
                        const std::string& folder);

}  // namespace convlab

#endif  // REPORTS_COMPARISON_RANKING_H_
