// The trace that a milestone's --profile writes, and Chrome traces like it.
#ifndef REPORTS_IMPORTERS_CHROME_TRACE_H_
#define REPORTS_IMPORTERS_CHROME_TRACE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/activities.h"
#include "common/record/profile.h"

namespace convlab {

// Whether the text begins like such a trace.
bool IsChromeTrace(absl::string_view content);

// The trace's events; there is at least one. The error says what is wrong.
absl::StatusOr<Activities> ReadChromeTrace(absl::string_view content);

// The same, summed up.
absl::StatusOr<Profile> ParseChromeTrace(absl::string_view content);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_CHROME_TRACE_H_
