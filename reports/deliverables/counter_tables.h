// What the hardware counters in the records say of a variant's kernels.
#ifndef REPORTS_DELIVERABLES_COUNTER_TABLES_H_
#define REPORTS_DELIVERABLES_COUNTER_TABLES_H_

#include <string>

#include "common/record/run_record.h"
#include "reports/deliverables/deliverable.h"

namespace convlab {

// How differences are judged and what bounds a kernel, and what the columns and
// waits in the counters' tables mean.
void AddCounterRules(const Source& source, const RunRecord& ladder,
                     Deliverable& deliverable);

// A row for each kernel of the variant, what bounds the longest, and that one
// beside the longest of the rung before, which may be null. Without counters,
// the command that measures them.
void AddCounters(const Source& source, const std::string& variant,
                 const LadderRun* before, Deliverable& deliverable);

// Why a variant is no faster than the one before, if counters show it: a
// sentence after a blank, or nothing.
std::string WhyNotFaster(const Source& source, const LadderRun& run,
                         const LadderRun& before);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_COUNTER_TABLES_H_
