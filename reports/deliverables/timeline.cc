#include "reports/deliverables/timeline.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "reports/drawing/plots.h"
#include "reports/importers/chrome_trace.h"
#include "reports/importers/kernel_names.h"

namespace convlab {
absl::StatusOr<std::vector<TimelineEvent>> ReadTimeline(
    absl::string_view trace) {
  ASSIGN_OR_RETURN(const Activities activities, ReadChromeTrace(trace));
  std::vector<TimelineEvent> events;
  const auto add = [&](TimelineEvent::Row row, const auto& activity) {
    events.push_back({row, activity.name,
                      static_cast<double>(activity.start_ns) * 1e-6,
                      static_cast<double>(activity.end_ns) * 1e-6});
  };
  for (const ApiCall& call : activities.api) {
    add(TimelineEvent::Row::kApi, call);
  }
  for (const GpuActivity& activity : activities.gpu) {
    add(activity.kind == GpuActivity::Kind::kKernel
            ? TimelineEvent::Row::kKernel
            : TimelineEvent::Row::kCopy,
        activity);
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const TimelineEvent& a, const TimelineEvent& b) {
                     return a.start_ms < b.start_ms;
                   });
  const double zero = events[0].start_ms;
  for (TimelineEvent& event : events) {
    event.start_ms -= zero;
    event.end_ms -= zero;
  }
  return events;
}

Chart TimelineChart(const std::string& name, const std::string& title,
                    const std::vector<TimelineEvent>& events) {
  drawing::SpanPlot plot;
  plot.title = title;
  plot.axis = "time since the first API call, ms";
  plot.description =
      absl::StrCat(title, ": when API calls, kernels and copies ran");
  plot.rows = {{"API calls", drawing::Ink::kGrey, {}},
               {"kernels", drawing::Ink::kBlue, {}},
               {"copies", drawing::Ink::kOrange, {}}};
  double end = 0;
  for (const TimelineEvent& event : events) end = std::max(end, event.end_ms);
  const double pixel = end / 1500;  // finer than a pixel
  std::vector<int64_t> counts(plot.rows.size());
  for (const TimelineEvent& event : events) {
    const auto row = static_cast<size_t>(event.row);
    std::vector<drawing::SpanPlot::Span>& spans = plot.rows[row].spans;
    if (!spans.empty() && event.start_ms - spans.back().end < pixel) {
      spans.back().end = std::max(spans.back().end, event.end_ms);
      spans.back().hover = absl::StrFormat(
          "%d events from %.3f to %.3f ms, the first: %s", ++counts[row],
          spans.back().start, spans.back().end,
          spans.back().hover.substr(spans.back().hover.rfind(": ") + 2));
      continue;
    }
    counts[row] = 1;
    spans.push_back(
        {event.start_ms, event.end_ms,
         absl::StrFormat("%.3f to %.3f ms: %s", event.start_ms, event.end_ms,
                         ShortKernelName(event.name, 60))});
  }
  return {name, Draw(plot, drawing::kWide), Draw(plot, drawing::kNarrow)};
}

}  // namespace convlab
