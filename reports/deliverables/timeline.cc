#include "reports/deliverables/timeline.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/json/json_fields.h"
#include "common/status/status.h"
#include "reports/drawing/plots.h"
#include "reports/importers/kernel_names.h"

namespace convlab {
namespace {

// An event as the format has it, times in microseconds.
struct ChromeEvent {
  std::string phase;  // "X" for what has a begin and a length
  std::string category, name;
  std::optional<double> start_us, length_us;
};

struct ChromeTrace {
  std::vector<ChromeEvent> events;
};

template <typename Visitor>
void Fields(Visitor& visit, ChromeEvent& event) {
  visit("ph", event.phase);
  visit("cat", event.category);
  visit("name", event.name);
  visit("ts", event.start_us);
  visit("dur", event.length_us);
}

template <typename Visitor>
void Fields(Visitor& visit, ChromeTrace& trace) {
  visit("traceEvents", trace.events);
}

}  // namespace

absl::StatusOr<std::vector<TimelineEvent>> ReadTimeline(
    absl::string_view trace) {
  const auto bad = [](const absl::Status& why) {
    return Annotate(why, "not a Chrome trace");
  };
  ASSIGN_OR_RETURN(const json_fields::ParsedJson json,
                   json_fields::Parse("Chrome trace", trace));
  ChromeTrace read;
  if (absl::Status status = json_fields::Reader::Decode(json, "trace", read);
      !status.ok()) {
    return bad(status);
  }
  std::vector<TimelineEvent> events;
  for (ChromeEvent& entry : read.events) {
    if (entry.phase != "X") continue;
    if (!entry.start_us || !entry.length_us) {
      return bad(absl::InvalidArgumentError(
          "an event has no numbers \"ts\" and \"dur\""));
    }
    TimelineEvent event;
    event.row = entry.category == "api"      ? TimelineEvent::Row::kApi
                : entry.category == "kernel" ? TimelineEvent::Row::kKernel
                                             : TimelineEvent::Row::kCopy;
    event.name = std::move(entry.name);
    event.start_ms = *entry.start_us * 1e-3;
    event.end_ms = event.start_ms + *entry.length_us * 1e-3;
    events.push_back(std::move(event));
  }
  if (events.empty()) {
    return bad(absl::InvalidArgumentError("it holds no event"));
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
