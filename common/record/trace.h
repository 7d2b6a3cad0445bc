// A run's activities as a timeline for chrome://tracing and ui.perfetto.dev.
#ifndef COMMON_RECORD_TRACE_H_
#define COMMON_RECORD_TRACE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/record/activities.h"

namespace convlab {

// JSON in Chrome's trace event format, one event per line: a track for each
// host thread of `program` and for each stream of the GPU called `gpu`, and an
// arrow from each API call to the activity that it started.
std::string ChromeTrace(const Activities& activities, absl::string_view program,
                        absl::string_view gpu);

}  // namespace convlab

#endif  // COMMON_RECORD_TRACE_H_
