#include "reports/deliverables/charts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "nlohmann/json.hpp"
#include "reports/importers/listing.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

constexpr char kBlue[] = "#2f6db5", kRed[] = "#b3342f", kGreen[] = "#2e7d4f",
               kGrey[] = "#6b7480";

// A string of a script. Single quotes know no escapes but the doubled quote.
std::string Quote(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(OneLine(text), {{"'", "''"}}),
                      "'");
}

// A string of a data file, which cannot hold its quotes.
std::string DataString(absl::string_view text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(OneLine(text), {{"\"", "'"}, {"\\", "/"}}),
      "\"");
}

// What every script begins with. 480 pixels are 358 on a phone: 14 become 10.
// Title and key stand at the left, one below the other, whatever their lengths.
std::string Begin(const std::string& name, int height, const std::string& title,
                  int key_rows) {
  constexpr int kRow = 21, kTitle = 30;  // pixels
  constexpr size_t kTitleWidth = 54;     // characters that 480 pixels hold
  std::string script = absl::StrCat(
      "# Draws ", name, ".svg from ", name, ".dat: gnuplot ", name, ".gp\n",
      "set encoding utf8\nset terminal svg size 480,", height,
      " noenhanced font 'DejaVu Sans,13' background 'white'\nset output '",
      name, ".svg'\n", "set label ",
      Quote(ShortKernelName(OneLine(title), kTitleWidth)),
      " at screen 0.02, screen 1 left offset 0,-1 font ',14'\n",
      absl::StrFormat("set tmargin at screen %.4f\n",
                      1 - (kTitle + 12.0 + kRow * key_rows) / height),
      "set border 3 lc rgb '#444444'\nset tics nomirror out textcolor rgb "
      "'#222222'\n");
  if (key_rows > 0) {
    absl::StrAppend(
        &script,
        absl::StrFormat("set key at screen 0.02, screen %.4f left top Left "
                        "reverse samplen 2\n",
                        1 - 1.0 * kTitle / height));
  }
  return script;
}

// A bar's name, short enough to leave room for the bar.
std::string BarName(absl::string_view name) {
  return DataString(ShortKernelName(OneLine(name), 24));
}

std::string LadderTitle(const RunRecord& ladder) {
  return absl::StrCat(ladder.network, ", ", Plural(ladder.size, "image"), ", ",
                      ladder.gpu.name);
}

double PeerSum(const RunRecord& ladder) {
  double sum = 0;
  for (const PeerRecord& peer : ladder.peers) {
    sum += Median(peer.kernel_time_ns);
  }
  return sum;
}

// Points of a chart: as circles, since weasyprint cannot draw the markers of
// gnuplot's SVG.
constexpr char kCircles[] =
    "set style circle radius screen 0.008\nset style fill solid noborder\n";

// Rows of horizontal bars, the first on top.
std::string BarRows(size_t rows) {
  return absl::StrFormat(
      "set yrange [%.1f:-0.6]\nset style fill solid noborder\nset border 2\n"
      "set ytics scale 0\n",
      static_cast<double>(rows) - 0.4);
}

}  // namespace

Chart LadderChart(const std::string& name, const RunRecord& ladder,
                  const std::optional<GpuLimits>& limits) {
  Chart chart = {name, "# variant, sum of the op times in ms\n", ""};
  double least = PeerSum(ladder) > 0 ? PeerSum(ladder) : HUGE_VAL;
  double most = 0, floor = 0;
  size_t rows = 0;
  for (const LadderRun& run : ladder.ladder) {
    if (!run.failure.empty()) continue;
    const double sum = OpTimeSum(run.convolutions);
    absl::StrAppend(&chart.data, BarName(run.variant),
                    absl::StrFormat(" %.4f\n", sum * 1e-6));
    least = std::min(least, sum);
    most = std::max(most, sum);
    if (limits) floor = FloorNs(run.convolutions, *limits);
    ++rows;
  }
  if (floor > 0) least = std::min(least, floor);
  const int key_rows = (PeerSum(ladder) > 0 ? 1 : 0) + (floor > 0 ? 1 : 0);
  const double left = least * 1e-6 / 1.6, right = most * 1e-6 * 2.5;
  chart.script =
      absl::StrCat(Begin(name, 140 + 22 * static_cast<int>(rows),
                         LadderTitle(ladder), key_rows),
                   BarRows(rows), "set logscale x\nset xrange [",
                   absl::StrFormat("%.4g:%.4g", left, right),
                   "]\nset xlabel 'sum of the op times, ms (logarithmic)'\n"
                   "set grid x lc rgb '#dddddd'\nset border 3\n"
                   "set style textbox opaque noborder margins 0.3,0.1\n"
                   "plot '",
                   name, ".dat' using (", absl::StrFormat("%.4g", left),
                   "):0:(", absl::StrFormat("%.4g", left),
                   "):2:($0-0.36):($0+0.36):ytic(1) with boxxyerror lc rgb '",
                   kBlue, "' notitle");
  const auto line = [&](double ns, const std::string& title, const char* color,
                        int dash) {
    const double ms = ns * 1e-6;
    absl::StrAppend(
        &chart.script,
        absl::StrFormat(
            ", '+' using (%.4f):(%.1f):(0):(-%.1f) every ::::0 with "
            "vectors nohead lw 2 dt %d lc rgb '%s' title ",
            ms, static_cast<double>(rows) - 0.4,
            static_cast<double>(rows) + 0.2, dash, color),
        Quote(absl::StrFormat("%s: %.3g ms", ShortKernelName(title, 40), ms)));
  };
  if (PeerSum(ladder) > 0) {
    line(PeerSum(ladder), ladder.peers[0].library, kRed, 2);
  }
  if (floor > 0) line(floor, "floor", kGreen, 1);
  absl::StrAppend(
      &chart.script, ", '", name,
      ".dat' using 2:0:(sprintf('%.3g', $2)) with labels left boxed "
      "offset 0.4,0 notitle\n");
  return chart;
}

Chart OpTimeChart(const std::string& name, const std::string& title,
                  const std::vector<TimeCurve>& curves) {
  Chart chart = {name, "# images, op time in ms; a block per line\n", ""};
  std::string plot;
  constexpr const char* kColors[] = {kBlue, kRed, kGreen, kGrey};
  int64_t fewest = std::numeric_limits<int64_t>::max(), most = 0;
  double least = HUGE_VAL, longest = 0;
  for (size_t i = 0; i < curves.size(); ++i) {
    absl::StrAppend(&chart.data, i > 0 ? "\n\n" : "", "# ",
                    OneLine(curves[i].title), "\n");
    for (const auto& [images, ns] : curves[i].points) {
      fewest = std::min(fewest, images);
      most = std::max(most, images);
      least = std::min(least, ns);
      longest = std::max(longest, ns);
      absl::StrAppend(&chart.data, images,
                      absl::StrFormat(" %.6f\n", ns * 1e-6));
    }
    absl::StrAppend(&plot, i > 0 ? ", " : "", "'", name, ".dat' index ", i,
                    " with lines lw 2 lc rgb '", kColors[i % 4], "' title ",
                    Quote(curves[i].title), ", '' index ", i,
                    " with circles lc rgb '", kColors[i % 4], "' notitle");
  }
  chart.script = absl::StrCat(
      Begin(name, 360, title, static_cast<int>(curves.size())), kCircles,
      "set logscale xy\nset xlabel 'images'\nset ylabel 'op time, ms'\n"
      "set grid lc rgb '#dddddd'\n"
      "set format x '%.0f'\nset format y '%g'\n",
      absl::StrFormat("set xrange [%.4g:%.4g]\nset yrange [%.4g:%.4g]\n",
                      static_cast<double>(fewest) / 1.3,
                      static_cast<double>(most) * 1.3, least * 1e-6 / 1.6,
                      longest * 1e-6 * 1.6),
      "plot ", plot, "\n");
  return chart;
}

Chart RooflineChart(const std::string& name, const RunRecord& ladder,
                    const GpuLimits& limits) {
  Chart chart = {name,
                 "# FLOP per byte, TFLOP/s, rung, convolution, side of the "
                 "label; a block per convolution\n",
                 ""};
  struct Point {
    double intensity, rate;
    int rung;
  };
  std::map<size_t, std::vector<Point>> layers;
  for (const LadderRun& run : ladder.ladder) {
    if (!run.failure.empty()) continue;
    for (size_t i = 0; i < run.convolutions.size(); ++i) {
      const ConvolutionRecord& convolution = run.convolutions[i];
      const double flops = static_cast<double>(convolution.flops);
      layers[i].push_back({flops / static_cast<double>(convolution.min_bytes),
                           flops / Median(convolution.op_time_ns) * 1e-3,
                           ladder.variants.at(run.variant).rung});
    }
  }
  double least_x = HUGE_VAL, most_x = 0, least_y = HUGE_VAL;
  std::string plot;
  constexpr const char* kColors[] = {kBlue, kRed};
  for (auto& [layer, points] : layers) {
    std::sort(points.begin(), points.end(),
              [](const Point& a, const Point& b) { return a.rate < b.rate; });
    absl::StrAppend(&chart.data, layer > 0 ? "\n\n" : "");
    for (size_t i = 0; i < points.size(); ++i) {
      const Point& point = points[i];
      // Points that are near each other have their labels on different sides.
      absl::StrAppend(
          &chart.data,
          absl::StrFormat("%.3f %.4f %d %d %d\n", point.intensity, point.rate,
                          point.rung, layer + 1, i % 4));
      least_x = std::min(least_x, point.intensity);
      most_x = std::max(most_x, point.intensity);
      least_y = std::min(least_y, point.rate);
    }
    const std::string color = kColors[layer % 2];
    absl::StrAppend(&plot, ", '", name, ".dat' index ", layer,
                    " using 1:2 with circles lc rgb '", color,
                    "' title 'convolution ", layer + 1, "'");
    // Right, left, further right, further left.
    for (int side = 0; side < 4; ++side) {
      const bool left = side % 2 == 1;
      absl::StrAppend(
          &plot, ", '' index ", layer,
          absl::StrFormat(" using ($5==%d?$1:NaN):2:3 with labels %s offset "
                          "%s%.1f,0 font ',11' textcolor rgb '%s' notitle",
                          side, left ? "right" : "left", left ? "-" : "",
                          side < 2 ? 0.7 : 2.7, color));
    }
  }
  const double left = std::min(least_x / 4, 2.0), right = most_x * 8;
  const auto ceiling = [&](double flops) {
    return absl::StrFormat("(x*%.4g<%.4g?x*%.4g:%.4g)",
                           limits.bytes_per_second * 1e-12, flops * 1e-12,
                           limits.bytes_per_second * 1e-12, flops * 1e-12);
  };
  chart.script = absl::StrCat(
      Begin(name, 560, LadderTitle(ladder),
            2 + static_cast<int>(layers.size())),
      kCircles, "set logscale xy\nset samples 400\n",
      absl::StrFormat("set xrange [%.3g:%.3g]\nset yrange [%.3g:%.4g]\n", left,
                      right, least_y / 1.6, limits.tensor_flops * 1.6e-12),
      "set xlabel 'FLOP per byte that must move'\nset ylabel 'TFLOP/s'\n"
      "set grid lc rgb '#e4e4e4'\n"
      "set format y '%g'\nplot ",
      ceiling(limits.tensor_flops), " lw 2 lc rgb '", kGreen,
      "' title 'tensor cores, FP16', ", ceiling(limits.fp32_flops),
      " lw 2 dt 2 lc rgb '", kGrey, "' title 'FP32 cores'", plot, "\n");
  return chart;
}

std::string OthersOf(const ShareList& list) {
  return Plural(static_cast<int64_t>(list.entries - list.shares.size()),
                "other");
}

Chart ShareChart(const std::string& name, const std::string& title,
                 const ShareList& list) {
  Chart chart = {name, "# name, percent of the time\n", ""};
  double others = 100 * list.listed, most = 0;
  size_t rows = list.shares.size();
  for (const Share& share : list.shares) {
    absl::StrAppend(&chart.data, BarName(share.entry.name),
                    absl::StrFormat(" %.2f\n", 100 * share.share));
    others -= 100 * share.share;
    most = std::max(most, 100 * share.share);
  }
  if (list.entries > list.shares.size()) {
    absl::StrAppend(&chart.data, DataString(OthersOf(list)),
                    absl::StrFormat(" %.2f\n", others));
    ++rows;
    most = std::max(most, others);
  }
  chart.script = absl::StrCat(
      Begin(name, 110 + 26 * static_cast<int>(rows), title, 0), BarRows(rows),
      absl::StrFormat("set xrange [0:%.4g]\n", most * 1.18),  // room for labels
      "set xlabel 'share of the time, %'\nset grid x lc rgb '#dddddd'\n"
      "set border 3\n"
      "plot '",
      name,
      ".dat' using (0):0:(0):2:($0-0.36):($0+0.36):ytic(1) with boxxyerror lc "
      "rgb '",
      kBlue,
      "' notitle, '' using 2:0:(sprintf('%.1f', $2)) with labels left offset "
      "0.4,0 notitle\n");
  return chart;
}

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
  const double pixel = end / 1000;  // finer than what is drawn
  constexpr const char* kColors[] = {kGrey, kBlue, kRed};
  std::string plot;
  for (int row = 0; row < 3; ++row) {
    absl::StrAppend(&chart.data, row > 0 ? "\n\n" : "");
    double start = -1, stop = -1;  // of what is not written yet
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
      Begin(name, 230, title, 0),
      absl::StrFormat("set xrange [0:%.4f]\n", end * 1.01),
      "set yrange [2.6:-0.6]\nset ytics scale 0 ('API calls' 0, 'kernels' 1, "
      "'copies' 2)\nset style fill solid border\n"
      "set xlabel 'time since the first API call, ms'\n"
      "set grid x lc rgb '#dddddd'\nplot ",
      plot, "\n");
  return chart;
}

Chart LayersChart(const std::string& name, const std::string& title,
                  const std::string& peer,
                  const std::vector<LayerTimes>& layers) {
  Chart chart = {name, "# layer, ms: ours, the library's, the floor\n", ""};
  double least = HUGE_VAL, most = 0;
  const auto cell = [&](const std::optional<double>& ms) {
    if (!ms) return std::string(" ?");
    least = std::min(least, *ms);
    most = std::max(most, *ms);
    return absl::StrFormat(" %.4f", *ms);
  };
  for (const LayerTimes& layer : layers) {
    absl::StrAppend(&chart.data, DataString(layer.layer), cell(layer.ours),
                    cell(layer.peer), cell(layer.floor), "\n");
  }
  // Bars begin at the left edge, where a logarithmic scale has no 0.
  const std::string left = absl::StrFormat("%.4g", least / 2);
  chart.script = absl::StrCat(
      Begin(name, 150 + 54 * static_cast<int>(layers.size()), title, 3),
      BarRows(layers.size()),
      "set datafile missing '?'\nset logscale x\nset xrange [", left, ":",
      absl::StrFormat("%.4g", most * 3),
      "]\nset xlabel 'ms (logarithmic)'\nset grid x lc rgb '#dddddd'\n"
      "set border 3\nplot ");
  const auto bars = [&](int column, double row, const char* color,
                        const std::string& key, bool first) {
    absl::StrAppend(
        &chart.script, first ? "" : ", ", "'", name, ".dat' using (", left,
        "):0:(", left,
        absl::StrFormat("):%d:($0%+.2f):($0%+.2f)", column, row - 0.13,
                        row + 0.13),
        first ? ":ytic(1)" : "", " with boxxyerror lc rgb '", color, "' title ",
        Quote(key),
        absl::StrFormat(", '' using %d:($0%+.2f):(sprintf('%%.3g', $%d)) with "
                        "labels left offset 0.4,0 font ',10' notitle",
                        column, row, column));
  };
  bars(2, -0.28, kBlue, "ours", true);
  const auto any = [&](std::optional<double> LayerTimes::*time) {
    return std::any_of(
        layers.begin(), layers.end(),
        [&](const LayerTimes& layer) { return (layer.*time).has_value(); });
  };
  if (any(&LayerTimes::peer)) bars(3, 0, kRed, peer, false);
  if (any(&LayerTimes::floor)) bars(4, 0.28, kGreen, "floor", false);
  chart.script += "\n";
  return chart;
}

}  // namespace convlab
