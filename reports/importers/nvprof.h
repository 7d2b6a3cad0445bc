// Reads nvprof's summary of a run, as text or with --csv: the form before 2018,
// with sections under "Profiling result:" and "API calls:" lines, and the later
// form with a column for the type. Lines may be copied from a report:
// surrounded by a program's output, with squeezed blanks and wrapped names.
#ifndef REPORTS_IMPORTERS_NVPROF_H_
#define REPORTS_IMPORTERS_NVPROF_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/profile.h"

namespace convlab {

// InvalidArgument says with line and column what is damaged or missing.
absl::StatusOr<Profile> ParseNvprof(absl::string_view content);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_NVPROF_H_
