// The table of what all records of a submission have in common.
#ifndef REPORTS_DELIVERABLES_FACTS_H_
#define REPORTS_DELIVERABLES_FACTS_H_

#include <string>
#include <vector>

#include "reports/document/document.h"
#include "reports/records/records.h"

namespace convlab {

// The team, its kernels, the machines, and when and by which revision the runs
// were made.
Table FactsOf(const Records& records, const std::string& team,
              const std::vector<std::string>& members);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_FACTS_H_
