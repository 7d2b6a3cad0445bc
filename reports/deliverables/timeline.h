// The timeline of a traced run, and its chart.
#ifndef REPORTS_DELIVERABLES_TIMELINE_H_
#define REPORTS_DELIVERABLES_TIMELINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "reports/document/document.h"

namespace convlab {

// An event in one of the rows: the host's API calls, and the GPU's kernels and
// copies.
struct TimelineEvent {
  enum class Row { kApi, kKernel, kCopy };

  Row row = Row::kApi;
  std::string name;
  double start_ms = 0, end_ms = 0;  // from the first event
};
// Reads the events of a Chrome trace that //common/record:trace wrote, sorted
// by start. The error says what is wrong with the trace.
absl::StatusOr<std::vector<TimelineEvent>> ReadTimeline(
    absl::string_view trace);
// Draws all events to scale; events that are too close to be distinguished
// become one box, and long stretches in which the GPU is idle are cut.
Chart TimelineChart(const std::string& name, const std::string& title,
                    const std::vector<TimelineEvent>& events);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_TIMELINE_H_
