// The generated passages of README.md.
#ifndef REPORTS_README_CONTENT_H_
#define REPORTS_README_CONTENT_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

// `readme` with its generated passages made from the records below the folder
// `measured`. Errors name the record or the passage.
absl::StatusOr<std::string> UpdateReadme(absl::string_view readme,
                                         const std::string& measured);

// The README's charts: name and content of the data and script files that stand
// in reports/charts, from which gnuplot draws the SVG files beside them.
absl::StatusOr<std::map<std::string, std::string>> ReadmeCharts(
    const std::string& measured);

}  // namespace convlab

#endif  // REPORTS_README_CONTENT_H_
