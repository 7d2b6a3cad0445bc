// Parts of the tables of op times that milestones 2 and 3 have in common.
#ifndef REPORTS_DELIVERABLES_TIME_TABLES_H_
#define REPORTS_DELIVERABLES_TIME_TABLES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "reports/deliverables/deliverable.h"

namespace convlab {

size_t MostConvolutions(const std::vector<const RunRecord*>& records);

// A column for the op time of each convolution and one for their sum, and a
// run's cells in them.
void AddOpTimeColumns(size_t convolutions, Table& table);
void AddOpTimeCells(const RunRecord& record, size_t convolutions,
                    std::vector<Text>& row);

// The newest runs of a milestone on the device with each variant at each size,
// with participants' kernels first and ours in the ladder's order.
std::vector<const RunRecord*> NewestRuns(const Source& source,
                                         absl::string_view milestone,
                                         absl::string_view device);

// Of these runs the one with the most images of each participant's kernel; if
// there are none, of our fastest variant.
std::vector<const RunRecord*> ReachedRuns(
    const std::vector<const RunRecord*>& runs);

// A curve for each convolution, of the fastest of our variants and of each
// participant's kernel, which come first. There is no curve of fewer than two
// sizes.
void AddSizeChart(const std::string& name,
                  const std::vector<const RunRecord*>& runs,
                  const std::string& caption, Deliverable& deliverable);

// "The op times of 10,000 images add up to ..." of a run, and why the judge
// does not call its kernel right.
Text ReachedText(const RunRecord& run);

// The newest run of each participant's kernel that failed in the milestone
// before it had op times, and how that is told.
std::vector<const RunRecord*> FailedRuns(const Source& source,
                                         absl::string_view milestone);
Text FailureText(const RunRecord& run);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_TIME_TABLES_H_
