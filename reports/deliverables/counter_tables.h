// Tables and sentences from the hardware counters of a variant's kernels.
#ifndef REPORTS_DELIVERABLES_COUNTER_TABLES_H_
#define REPORTS_DELIVERABLES_COUNTER_TABLES_H_

#include <string>
#include <vector>

#include "common/record/run_record.h"
#include "reports/deliverables/deliverable.h"

namespace convlab {

// A chart of what changed in the longest kernel, before and after; and whether
// there are counters of the variant. Without any, the command that measures
// them, unless the kernel is a participant's.
bool AddCounters(const Source& source, const std::string& variant,
                 const LadderRun* before, bool is_contributed,
                 Deliverable& deliverable);

// What bounds the variant's longest kernel; empty if counters do not show it.
Text BoundText(const Source& source, const std::string& variant);

// Why a variant is not faster than the one before, if counters show it: a
// sentence, or an empty text.
std::string WhyNotFaster(const Source& source, const LadderRun& run,
                         const LadderRun& before);

// A part of the appendix: a row for each kernel of the variants, and what the
// columns and waits mean.
Deliverable CountersOf(const Source& source,
                       const std::vector<std::string>& variants);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_COUNTER_TABLES_H_
