// Parts of several milestones' deliverables: lists and charts of a traced run,
// and a run's output.
#ifndef REPORTS_DELIVERABLES_PROFILE_TABLES_H_
#define REPORTS_DELIVERABLES_PROFILE_TABLES_H_

#include <string>
#include <vector>

#include "reports/deliverables/deliverable.h"

namespace convlab {

// The list of the entries that together take more than 90 % of the section's
// time. `what` names the entries. Long names are cut; NamesInFull has them.
void AddShareList(const Source& source, const ProfileSection& section,
                  const RunRecord& record, const std::string& what,
                  Deliverable& deliverable);

// A bar for each entry of that list of the GPU's activities; none without one.
std::vector<Block> SharePicture(const std::string& name,
                                const RunRecord& record);

// The run's timeline, with a link to its trace; without a trace, the command
// that makes one.
void AddTimeline(const std::string& name, const Source& source,
                 const RunRecord& record, Deliverable& deliverable);

// A chart of where the time of the whole program goes.
Figure TimePicture(const std::string& name, const RunRecord& record);

// The command, its output, and its run time.
void AddRun(const RunRecord& record, Deliverable& deliverable);

// Parts of the appendix: what the runs printed; the kernels' names that lists
// have cut; the longest events of a timeline. Without blocks if there are none.
Deliverable Outputs(const std::vector<const RunRecord*>& runs);
Deliverable NamesInFull(const RunRecord* traced);
Deliverable LongestEvents(const Source& source, const RunRecord* traced);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_PROFILE_TABLES_H_
