// A milestone's submission: every deliverable of the milestone and of those
// before it, in the course's order, as one document.
#ifndef REPORTS_DELIVERABLES_SUBMISSION_H_
#define REPORTS_DELIVERABLES_SUBMISSION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/comparison/ranking.h"
#include "reports/document/document.h"
#include "reports/records/records.h"

namespace convlab {

struct SubmissionOptions {
  std::string milestone;  // "m1" to "m4", or "final"
  std::string team;       // may be empty
  std::vector<std::string> members;
  // The variants that milestone 4 and the final report discuss; all if empty.
  std::vector<std::string> optimizations;
  // The participants whom the final report ranks.
  std::vector<Participant> participants;
};

struct Submission {
  Document document;
  // The titles of incomplete deliverables.
  std::vector<std::string> incomplete;
};

// InvalidArgument for an unknown milestone or optimization, for records that do
// not belong together, and for a damaged trace.
absl::StatusOr<Submission> MakeSubmission(const Records& records,
                                          const SubmissionOptions& options);

// All figures of the document.
std::vector<Chart> ChartsOf(const Document& document);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_SUBMISSION_H_
