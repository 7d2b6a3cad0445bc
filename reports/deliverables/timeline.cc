#include "reports/deliverables/timeline.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/json/json_fields.h"
#include "common/status/status.h"
#include "reports/deliverables/gnuplot.h"

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
  Chart chart = {name, "# start and end in ms; a block per row\n", ""};
  double end = 0;
  for (const TimelineEvent& event : events) end = std::max(end, event.end_ms);
  const double pixel = end / 1000;  // finer than a pixel
  constexpr const char* kColors[] = {gnuplot::kGrey, gnuplot::kBlue,
                                     gnuplot::kRed};
  std::string plot;
  for (int row = 0; row < 3; ++row) {
    absl::StrAppend(&chart.data, row > 0 ? "\n\n" : "");
    double start = -1, stop = -1;  // not yet written
    const auto flush = [&] {
      if (start < 0) return;
      absl::StrAppend(&chart.data, absl::StrFormat("%.4f %.4f\n", start, stop));
    };
    for (const TimelineEvent& event : events) {
      if (static_cast<int>(event.row) != row) continue;
      if (start >= 0 && event.start_ms - stop < pixel) {
        stop = std::max(stop, event.end_ms);
      } else {
        flush();
        start = event.start_ms;
        stop = event.end_ms;
      }
    }
    flush();
    if (start < 0) chart.data += "-1 -1\n";  // a block has a line at least
    absl::StrAppend(
        &plot, row > 0 ? ", " : "", "'", name, ".dat' index ", row,
        absl::StrFormat(" using 1:(%d):1:2:(%d-0.32):(%d+0.32) with boxxyerror "
                        "lw 0.5 lc rgb '%s' notitle",
                        row, row, row, kColors[row]));
  }
  chart.script = absl::StrCat(
      gnuplot::Begin(name, 230, title, 0),
      absl::StrFormat("set xrange [0:%.4f]\n", end * 1.01),
      "set yrange [2.6:-0.6]\nset ytics scale 0 ('API calls' 0, 'kernels' 1, "
      "'copies' 2)\nset style fill solid border\n"
      "set xlabel 'time since the first API call, ms'\n"
      "set grid x lc rgb '#dddddd'\nplot ",
      plot, "\n");
  return chart;
}

}  // namespace convlab
