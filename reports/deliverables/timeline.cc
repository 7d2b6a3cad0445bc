#include "reports/deliverables/timeline.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "reports/deliverables/gnuplot.h"

namespace convlab {

absl::StatusOr<std::vector<TimelineEvent>> ReadTimeline(
    absl::string_view trace) {
  const auto bad = [](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a Chrome trace: ", what));
  };
  const nlohmann::json json = nlohmann::json::parse(
      trace.begin(), trace.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("traceEvents") ||
      !json["traceEvents"].is_array()) {
    return bad("not valid JSON, or without a list \"traceEvents\"");
  }
  std::vector<TimelineEvent> events;
  for (const nlohmann::json& entry : json["traceEvents"]) {
    if (!entry.is_object()) return bad("an event is no object");
    const auto text = [&](const char* field) {
      const auto found = entry.find(field);
      return found != entry.end() && found->is_string()
                 ? found->get<std::string>()
                 : std::string();
    };
    if (text("ph") != "X") continue;
    const auto start = entry.find("ts"), length = entry.find("dur");
    if (start == entry.end() || length == entry.end() || !start->is_number() ||
        !length->is_number()) {
      return bad("an event has no numbers \"ts\" and \"dur\"");
    }
    TimelineEvent event;
    const std::string category = text("cat");
    event.row = category == "api"      ? TimelineEvent::Row::kApi
                : category == "kernel" ? TimelineEvent::Row::kKernel
                                       : TimelineEvent::Row::kCopy;
    event.name = text("name");
    event.start_ms = start->get<double>() * 1e-3;
    event.end_ms = event.start_ms + length->get<double>() * 1e-3;
    events.push_back(std::move(event));
  }
  if (events.empty()) return bad("it holds no event");
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
