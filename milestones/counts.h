// Whether a run's numbers of correct answers, and its samples, can be believed.
#ifndef MILESTONES_COUNTS_H_
#define MILESTONES_COUNTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/record/run_record.h"

namespace convlab {

// DataLoss, naming the first such repetition, if one has another number of
// correct answers than the first has: all compute the same.
absl::Status CheckRepetitions(absl::Span<const int64_t> counts);

// DataLoss, naming the repetition if there are several, if a number differs by
// more than `tolerance` from the expected one, whose source `where` names:
// "where the weight file says 9193".
absl::Status CheckCounts(absl::Span<const int64_t> counts, int64_t expected,
                         int64_t tolerance, const std::string& where);

// Checks the repetitions' numbers of a run and, where it is known, the expected
// one (ExpectedCorrect); `tolerance` is that of the variants' classes. What is
// wrong becomes record.count_error. It is also returned if the repetitions
// differ, or if the run is `strict`.
absl::Status JudgeCounts(absl::Span<const int64_t> counts, int64_t tolerance,
                         bool strict, RunRecord& record);

// Of three or more samples of a convolution: one line about the one that lies
// farthest from their median, if that is by a factor of two or more; otherwise
// empty.
std::string DescribeFarSample(
    const std::vector<ConvolutionRecord>& convolutions);

}  // namespace convlab

#endif  // MILESTONES_COUNTS_H_
