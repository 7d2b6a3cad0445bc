// ncu's output with --csv: hardware counters of single kernel launches, from
// the details page (a metric per row) or the raw page (a launch per row).
#ifndef REPORTS_IMPORTERS_NCU_H_
#define REPORTS_IMPORTERS_NCU_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/profile.h"

namespace convlab {

// Whether a line of `content` is the header of such a page.
bool HasNcuHeader(absl::string_view content);

// Reads the launches with their counters, without metrics whose value is a
// text. If each launch has a duration, the profile also has an entry of GPU
// activities for each kernel. InvalidArgument says with line and column what is
// damaged or ambiguous.
absl::StatusOr<Profile> ParseNcu(absl::string_view content);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_NCU_H_
