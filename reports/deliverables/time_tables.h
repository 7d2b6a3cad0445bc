// Parts of the tables of op times that milestones 2 and 3 have in common.
#ifndef REPORTS_DELIVERABLES_TIME_TABLES_H_
#define REPORTS_DELIVERABLES_TIME_TABLES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "reports/deliverables/deliverable.h"

namespace convlab {

size_t MostConvolutions(const std::vector<const RunRecord*>& records);

// A column for the op time of each convolution and one for their sum, and a
// run's cells in them.
void AddOpTimeColumns(size_t convolutions, Table& table);
void AddOpTimeCells(const RunRecord& record, size_t convolutions,
                    std::vector<Text>& row);

// Those on a participant's kernel first, each kind in its order.
std::vector<const RunRecord*> ContributedFirst(
    std::vector<const RunRecord*> runs);

// A curve for each convolution, of the runs with the same variants as the last
// of ours, and of those with the same kernel as the last contributed one, which
// come first. There is no curve of fewer than two sizes.
void AddSizeChart(const std::string& name,
                  const std::vector<const RunRecord*>& runs,
                  const std::string& caption, Deliverable& deliverable);

// "The op times of 10,000 images add up to ..." of a run.
Text ReachedText(const RunRecord& run);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_TIME_TABLES_H_
