// The rules of Chrome's trace event format for the events that ChromeTrace
// uses: "X", "M", "s" and "f".
#ifndef COMMON_RECORD_TRACE_RULES_H_
#define COMMON_RECORD_TRACE_RULES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

// The contents of a trace.
struct TraceCounts {
  int64_t slices = 0;
  int64_t tracks = 0;
  int64_t arrows = 0;
};

// InvalidArgument says which event (from 1, in the file's order) breaks which
// rule:
// - the file is JSON, and every event has its kind, name, process and track;
// - a slice has a time and a duration, which are not negative;
// - the slices of a track nest;
// - an arrow has one beginning and one end, not before it, and each lies within
//   a slice of its track.
absl::StatusOr<TraceCounts> CheckTrace(absl::string_view json);

}  // namespace convlab

#endif  // COMMON_RECORD_TRACE_RULES_H_
