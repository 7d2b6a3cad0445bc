// Generated passages of a document that is otherwise written by hand. They
// stand between two lines, which Markdown does not show:
//   <!-- begin NAME -->
//   <!-- end NAME -->
#ifndef REPORTS_MARKERS_H_
#define REPORTS_MARKERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

// The names of the passages in the document, in their order.
std::vector<std::string> PassageNames(absl::string_view document);

// Returns `document` with `content` between the markers of `name`.
// InvalidArgument unless each of the two occurs once, in this order.
absl::StatusOr<std::string> ReplacePassage(absl::string_view document,
                                           absl::string_view name,
                                           absl::string_view content);

}  // namespace convlab

#endif  // REPORTS_MARKERS_H_
