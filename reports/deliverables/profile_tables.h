// Parts of several milestones' deliverables: lists and charts of a traced run,
// and a run's output.
#ifndef REPORTS_DELIVERABLES_PROFILE_TABLES_H_
#define REPORTS_DELIVERABLES_PROFILE_TABLES_H_

#include <string>

#include "reports/deliverables/deliverable.h"

namespace convlab {

// The list of the entries that together take more than 90 % of the section's
// time. `what` names the entries.
void AddShareList(const ProfileSection& section, const RunRecord& record,
                  const std::string& what, Deliverable& deliverable);

// A bar for each entry of that list of the GPU's activities.
void AddShareChart(const std::string& name, const RunRecord& record,
                   Deliverable& deliverable);

// The run's timeline and its longest events; without a trace, the command that
// makes one.
void AddTimeline(const std::string& name, const Source& source,
                 const RunRecord& record, Deliverable& deliverable);

// The command, its output, and its run time.
void AddRun(const RunRecord& record, Deliverable& deliverable);

// "11.71 s user, 0.10 s system".
std::string CpuTime(const RunRecord& record);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_PROFILE_TABLES_H_
