// Two runs, or two folders of runs, beside each other.
#ifndef REPORTS_COMPARISON_COMPARISON_H_
#define REPORTS_COMPARISON_COMPARISON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/document/document.h"
#include "reports/records/records.h"

namespace convlab {

// The op times of all runs that both sides hold, per convolution and in sum:
// medians, their ratio, and whether they differ by more than their spread. Runs
// are the same if milestone, device, network, data set, size and variants are,
// and where each side has one run alone, whatever their milestones and variants
// are. InvalidArgument if the two sides are of different devices or problems,
// unless `force` is set; if they have no run in common; and if a side has the
// same run twice.
absl::StatusOr<std::vector<Block>> CompareRecords(const Records& a,
                                                  const Records& b, bool force);

}  // namespace convlab

#endif  // REPORTS_COMPARISON_COMPARISON_H_
