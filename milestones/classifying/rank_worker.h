// The side of a rank that is not rank 0: its workers take their pieces from
// there.
#ifndef MILESTONES_CLASSIFYING_RANK_WORKER_H_
#define MILESTONES_CLASSIFYING_RANK_WORKER_H_

#include <chrono>

#include "absl/status/status.h"
#include "common/ranks/ranks.h"
#include "milestones/classifying/options.h"

namespace convlab {

// What rank 0 has to end the other ranks after it has failed.
inline constexpr std::chrono::seconds kRankPatience(2);

// Works for rank 0 until the run is over. What fails here is told by rank 0; an
// error is of rank 0 itself. `in_order` is whether all ranks are there to end
// together.
absl::Status WorkForRankZero(const ClassifyOptions& options, Ranks& ranks,
                             bool& in_order);

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_RANK_WORKER_H_
