// A milestone's submission: its deliverables in the course's order, as one
// document that begins with a summary.
#ifndef REPORTS_DELIVERABLES_SUBMISSION_H_
#define REPORTS_DELIVERABLES_SUBMISSION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reports/comparison/ranking.h"
#include "reports/document/document.h"
#include "reports/records/records.h"

namespace convlab {

struct SubmissionOptions {
  std::string milestone;  // "m1" to "m4", or "final"
  std::string team;       // may be empty
  std::vector<std::string> members;
  // The variants that milestone 4 and the final report discuss, in this order;
  // some if empty (ChosenRungs).
  std::vector<std::string> optimizations;
  // The variant that they are compared with; if empty, each with the one
  // before.
  std::string base;
  // The participants whom the final report ranks.
  std::vector<Participant> participants;
  std::string notes;         // the student's text (notes.h); may be empty
  bool has_prose = true;     // whether generated prose stands in the document
  bool has_appendix = true;  // the other rungs, raw output and long names
  std::string out;           // the document's folder, from which links start
};

struct Submission {
  Document document;
  // The titles of incomplete deliverables.
  std::vector<std::string> incomplete;
  // A file for the student's text, with the document's headings.
  std::string notes_template;
};

// InvalidArgument, as MakeSubmission returns it, for an unknown milestone and
// for notes that are no notes: what can be told before there are records.
absl::Status CheckOptions(const SubmissionOptions& options);

// InvalidArgument for an unknown milestone or optimization, for records that do
// not belong together, for a damaged trace, and for notes that are not of this
// document.
absl::StatusOr<Submission> MakeSubmission(const Records& records,
                                          const SubmissionOptions& options);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_SUBMISSION_H_
