// Reads the output of `nsys stats` from 2020 to 2026, as text (columns or
// boxes) or CSV: the summaries of kernels, of copies and memsets by time, and
// of API calls. Other summaries in the same file (OS runtime, NVTX, sizes) are
// skipped.
#ifndef REPORTS_IMPORTERS_NSYS_STATS_H_
#define REPORTS_IMPORTERS_NSYS_STATS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/profile.h"

namespace convlab {

// InvalidArgument says with line and column what is damaged or missing.
absl::StatusOr<Profile> ParseNsysStats(absl::string_view content);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_NSYS_STATS_H_
