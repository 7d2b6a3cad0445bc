// The course's ranking: each participant's best correct run by the sum of its
// op times.
#ifndef REPORTS_COMPARISON_RANKING_H_
#define REPORTS_COMPARISON_RANKING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/document/document.h"
#include "reports/records/records.h"

namespace convlab {

// The runs that are ranked.
struct RankingOptions {
  std::string network = "fa19";
  int64_t size = 10000;
  std::string device = "gpu";  // or "cpu"
  // The expected number of correct answers; by default the weight file's.
  std::optional<int64_t> correct;
  bool any_device = false;  // rank runs on different GPUs or CPUs together
};

struct Participant {
  std::string name;
  Records records;
};

struct Rank {
  std::string name;
  int place = 0;      // from 1; equal sums share a rank; 0: disqualified
  double sum_ns = 0;  // of the medians of the op times
  std::string run;    // milestone and variants
  std::string accuracy_class;
  int64_t correct = 0;
  double deviations = 0;  // standard deviations slower than the median
  double points = 0;
  std::string reason;  // for a disqualification; empty for others
};

struct Ranking {
  std::vector<Rank> ranks;  // the best first, the disqualified last
  double median_ns = 0;
  double deviation_ns = 0;
};

// 80 points at the median of the sums, 10 more or fewer for each standard
// deviation that a sum is below or above it, within 0 and 100; 0 for the
// disqualified. The standard deviation is the root of the mean squared
// distance from the mean, over all who are ranked.
double Points(double deviations);
inline constexpr char kPointsRule[] =
    "80 points at the median, 10 more for each standard deviation below it and "
    "10 fewer for each above, within 0 and 100; none without a correct run.";

// Reads the records below `folder`, which gives the participant's name.
absl::StatusOr<Participant> ReadParticipant(const std::string& folder);

// The best correct untraced run of each participant, in the order of their
// ranks. InvalidArgument if the runs are on different GPUs (or CPUs), unless
// that is allowed, or if two participants have the same name.
absl::StatusOr<Ranking> RankParticipants(
    const std::vector<Participant>& participants,
    const RankingOptions& options);

std::vector<Block> DescribeRanking(const Ranking& ranking,
                                   const RankingOptions& options);

}  // namespace convlab

#endif  // REPORTS_COMPARISON_RANKING_H_
