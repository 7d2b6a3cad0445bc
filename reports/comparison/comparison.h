// Comparison of two runs, or of two folders of runs.
#ifndef REPORTS_COMPARISON_COMPARISON_H_
#define REPORTS_COMPARISON_COMPARISON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/document/document.h"
#include "reports/records/records.h"

namespace convlab {

// Compares the op times of all runs that both sides have, per convolution and
// in sum: medians, their ratio, and whether they differ by more than their
// spread. Runs are the same if milestone, device, network, data set, size and
// variants are equal. If each side has a single run, milestones and variants
// may differ. InvalidArgument if the two sides are of different devices or
// problems, unless `force` is set; if they have no run in common; and if a side
// has the same run twice.
absl::StatusOr<std::vector<Block>> CompareRecords(const Records& a,
                                                  const Records& b, bool force);

}  // namespace convlab

#endif  // REPORTS_COMPARISON_COMPARISON_H_
