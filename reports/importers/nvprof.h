// nvprof's summary of a run, as text or with --csv: the form before 2018, whose
// sections stand under "Profiling result:" and "API calls:" lines, and the one
// since, with a column for the type. Lines may come from a report: with a
// program's output round them, blanks squeezed, long names wrapped.
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
