// Tables and sentences from the hardware counters of a variant's kernels.
#ifndef REPORTS_DELIVERABLES_COUNTER_TABLES_H_
#define REPORTS_DELIVERABLES_COUNTER_TABLES_H_

#include <string>

#include "common/record/run_record.h"
#include "reports/deliverables/deliverable.h"

namespace convlab {

// Explains how differences are judged, what bounds a kernel, and the columns
// and waits of the counters' tables.
void AddCounterRules(const Source& source, const RunRecord& ladder,
                     Deliverable& deliverable);

// A row for each kernel of the variant, the bound of the longest, and its
// comparison with the longest of the rung before, which may be null. Without
// counters, the command that measures them.
void AddCounters(const Source& source, const std::string& variant,
                 const LadderRun* before, Deliverable& deliverable);

// Why a variant is not faster than the one before, if counters show it: a blank
// and a sentence, or an empty text.
std::string WhyNotFaster(const Source& source, const LadderRun& run,
                         const LadderRun& before);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_COUNTER_TABLES_H_
