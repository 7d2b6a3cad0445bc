// The passages of README.md and docs/ that are generated from records, and the
// charts that they show.
#ifndef REPORTS_PASSAGES_H_
#define REPORTS_PASSAGES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

// The documents with generated passages, relative to the repository.
const std::vector<std::string>& GeneratedDocuments();

// `document` with what stands between each of its pairs of markers
// (reports/markers.h) made from the records below the folder `measured`. A name
// of a marker that is not known is InvalidArgument, and lists those that are;
// other errors name the record or the passage.
absl::StatusOr<std::string> UpdatePassages(absl::string_view document,
                                           const std::string& measured);

// Name and content of the files in reports/charts.
absl::StatusOr<std::map<std::string, std::string>> PassageCharts(
    const std::string& measured);

}  // namespace convlab

#endif  // REPORTS_PASSAGES_H_
