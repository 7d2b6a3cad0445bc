// Documents as PDF, by weasyprint.
#ifndef REPORTS_PDF_H_
#define REPORTS_PDF_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "reports/document/document.h"

namespace convlab {

// Writes the document to `name` in `folder`, from which its links start. If the
// last of several pages would be less than half full, letters and distances are
// enlarged a little. NotFound if weasyprint is not installed.
absl::Status WritePdf(const Document& document, const std::string& folder,
                      const std::string& name);

// The length of the text in pages, by the place of kEndId in a PDF: 2.25 if a
// quarter of the third page is used. Absent if the file does not say.
std::optional<double> PagesOf(absl::string_view pdf);

}  // namespace convlab

#endif  // REPORTS_PDF_H_
