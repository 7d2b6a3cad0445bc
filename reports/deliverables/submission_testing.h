// What tests of submissions have in common.
#ifndef REPORTS_DELIVERABLES_SUBMISSION_TESTING_H_
#define REPORTS_DELIVERABLES_SUBMISSION_TESTING_H_

#include <string>
#include <vector>

#include "reports/deliverables/submission.h"
#include "reports/document/document.h"
#include "reports/records/records.h"

namespace convlab {

SubmissionOptions For(const std::string& milestone);

// The submission; a failure of the test if it cannot be made.
Submission Made(const Records& records, const SubmissionOptions& options);

std::string Markdown(const Records& records, const std::string& milestone);

// What stands between the section whose title begins so and the next one.
std::string Section(const std::string& markdown, const std::string& title);

// The headings of the summary, the deliverables and the appendix.
std::vector<std::string> Headings(const Document& document);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_SUBMISSION_TESTING_H_
