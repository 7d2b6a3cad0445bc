#include "reports/deliverables/charts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/hardware/floor.h"
#include "common/record/ladder_rows.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "reports/deliverables/gnuplot.h"
#include "reports/importers/kernel_names.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

using gnuplot::BarName;
using gnuplot::BarRows;
using gnuplot::Begin;
using gnuplot::DataString;
using gnuplot::kBlue;
using gnuplot::kCircles;
using gnuplot::kGreen;
using gnuplot::kGrey;
using gnuplot::kOrange;
using gnuplot::kRed;
using gnuplot::Quote;

std::string LadderTitle(const RunRecord& ladder) {
  return absl::StrCat(ladder.network, ", ", Plural(ladder.size, "image"), ", ",
                      ladder.gpu.name);
}

}  // namespace

Chart LadderChart(const std::string& name, const RunRecord& ladder) {
  Chart chart = {name, "# variant, sum of the op times in ms\n", ""};
  const LadderRows rows = RowsOf(ladder);
  double least = HUGE_VAL, most = 0;
  size_t bars = 0, contributed = 0;
  for (const LadderRow& row : rows.rows) {
    if (!row.times) continue;
    const double sum = row.times->sum_ns;
    absl::StrAppend(&chart.data, BarName(row.run->variant),
                    absl::StrFormat(" %.4f\n", sum * 1e-6));
    least = std::min(least, sum);
    most = std::max(most, sum);
    ++bars;
    if (row.is_contributed) ++contributed;
  }
  struct Line {
    std::string title;
    double ns;
    const char* color;
    int dash;
  };
  std::vector<Line> lines;
  if (rows.library && rows.library->times.sum_ns > 0) {
    lines.push_back({rows.library->first_layer->library,
                     rows.library->times.sum_ns, kRed, 2});
  }
  for (size_t i = 0; i < rows.floors.size(); ++i) {
    lines.push_back({absl::StrCat("floor of ", rows.floors[i].classes),
                     rows.floors[i].times.sum_ns, kGreen,
                     i == 0 ? 1 : 2 + static_cast<int>(i)});
  }
  for (const Line& line : lines) least = std::min(least, line.ns);
  const int keys = static_cast<int>(lines.size()) + (contributed > 0 ? 1 : 0);
  const double left = least * 1e-6 / 1.6, right = most * 1e-6 * 2.5;
  chart.script =
      absl::StrCat(Begin(name, 98 + 22 * static_cast<int>(bars) + 21 * keys,
                         LadderTitle(ladder), keys),
                   BarRows(bars), "set logscale x\nset xrange [",
                   absl::StrFormat("%.4g:%.4g", left, right),
                   "]\nset xlabel 'sum of the op times, ms (logarithmic)'\n"
                   "set grid x lc rgb '#dddddd'\nset border 3\n"
                   "set style textbox opaque noborder margins 0.3,0.1\n"
                   "plot '",
                   name, ".dat' using (", absl::StrFormat("%.4g", left),
                   "):0:(", absl::StrFormat("%.4g", left),
                   "):2:($0-0.36):($0+0.36):ytic(1) with boxxyerror lc rgb '",
                   kBlue, "' notitle");
  if (contributed > 0) {
    // Over the first bars.
    absl::StrAppend(
        &chart.script,
        absl::StrFormat(", '%s.dat' using (%.4g):0:(%.4g):($0<%d?$2:NaN):"
                        "($0-0.36):($0+0.36) with boxxyerror lc rgb '%s' "
                        "title 'contributed'",
                        name, left, left, contributed, kOrange));
  }
  for (const Line& line : lines) {
    const double ms = line.ns * 1e-6;
    absl::StrAppend(
        &chart.script,
        absl::StrFormat(
            ", '+' using (%.4f):(%.1f):(0):(-%.1f) every ::::0 with "
            "vectors nohead lw 2 dt %d lc rgb '%s' title ",
            ms, static_cast<double>(bars) - 0.4,
            static_cast<double>(bars) + 0.2, line.dash, line.color),
        Quote(absl::StrFormat("%s: %.3g ms", ShortKernelName(line.title, 40),
                              ms)));
  }
  absl::StrAppend(
      &chart.script, ", '", name,
      ".dat' using 2:0:(sprintf('%.3g', $2)) with labels left boxed "
      "offset 0.4,0 notitle\n");
  return chart;
}

Chart OpTimeChart(const std::string& name, const std::string& title,
                  const std::vector<TimeCurve>& times) {
  std::vector<Curve> curves;
  for (const TimeCurve& one : times) {
    Curve& curve = curves.emplace_back(Curve{one.title, {}});
    for (const auto& [images, ns] : one.points) {
      curve.points.emplace_back(images, ns * 1e-6);
    }
  }
  return CurvesChart(name, title, "op time", "ms", curves);
}

Chart CurvesChart(const std::string& name, const std::string& title,
                  const std::string& quantity, const std::string& unit,
                  const std::vector<Curve>& curves) {
  Chart chart = {name,
                 absl::StrCat("# images, ", quantity, " in ", unit,
                              "; a block per line\n"),
                 ""};
  std::string plot;
  constexpr const char* kColors[] = {kBlue, kRed, kGreen, kGrey};
  int64_t fewest = std::numeric_limits<int64_t>::max(), most = 0;
  double least = HUGE_VAL, largest = 0;
  for (size_t i = 0; i < curves.size(); ++i) {
    absl::StrAppend(&chart.data, i > 0 ? "\n\n" : "", "# ",
                    OneLine(curves[i].title), "\n");
    for (const auto& [images, value] : curves[i].points) {
      fewest = std::min(fewest, images);
      most = std::max(most, images);
      least = std::min(least, value);
      largest = std::max(largest, value);
      absl::StrAppend(&chart.data, images, absl::StrFormat(" %.6f\n", value));
    }
    absl::StrAppend(&plot, i > 0 ? ", " : "", "'", name, ".dat' index ", i,
                    " with lines lw 2 lc rgb '", kColors[i % 4], "' title ",
                    Quote(curves[i].title), ", '' index ", i,
                    " with circles lc rgb '", kColors[i % 4], "' notitle");
  }
  chart.script = absl::StrCat(
      Begin(name, 360, title, static_cast<int>(curves.size())), kCircles,
      "set logscale xy\nset xlabel 'images'\nset ylabel ",
      Quote(absl::StrCat(quantity, ", ", unit)),
      "\nset grid lc rgb '#dddddd'\n"
      "set format x '%.0f'\nset format y '%g'\n",
      absl::StrFormat("set xrange [%.4g:%.4g]\nset yrange [%.4g:%.4g]\n",
                      static_cast<double>(fewest) / 1.3,
                      static_cast<double>(most) * 1.3, least / 1.6,
                      largest * 1.6),
      "plot ", plot, "\n");
  return chart;
}

Chart RooflineChart(const std::string& name, const RunRecord& ladder,
                    const Rates& peaks) {
  Chart chart = {name,
                 "# FLOP per byte, TFLOP/s, rung, convolution, side of the "
                 "label; a block per convolution\n",
                 ""};
  struct Point {
    double intensity, rate;
    int rung;
  };
  std::map<size_t, std::vector<Point>> layers;
  double least_x = HUGE_VAL, most_x = 0, least_y = HUGE_VAL;
  std::string contributed;  // a block of their own, labelled with their names
  for (const LadderRun& run : ladder.ladder) {
    if (!run.failure.empty()) continue;
    const VariantRecord& variant = ladder.variants.at(run.variant);
    for (size_t i = 0; i < run.convolutions.size(); ++i) {
      const ConvolutionRecord& convolution = run.convolutions[i];
      const double flops = static_cast<double>(convolution.flops);
      const Point point = {flops / static_cast<double>(convolution.min_bytes),
                           flops / Median(convolution.op_time_ns) * 1e-3,
                           variant.rung};
      least_x = std::min(least_x, point.intensity);
      most_x = std::max(most_x, point.intensity);
      least_y = std::min(least_y, point.rate);
      if (IsContributed(variant)) {
        absl::StrAppend(
            &contributed,
            absl::StrFormat("%.3f %.4f ", point.intensity, point.rate),
            BarName(run.variant), "\n");
      } else {
        layers[i].push_back(point);
      }
    }
  }
  std::string plot;
  constexpr const char* kColors[] = {kBlue, kRed};
  for (auto& [layer, points] : layers) {
    std::sort(points.begin(), points.end(),
              [](const Point& a, const Point& b) { return a.rate < b.rate; });
    absl::StrAppend(&chart.data, layer > 0 ? "\n\n" : "");
    for (size_t i = 0; i < points.size(); ++i) {
      const Point& point = points[i];
      // Points close to each other have labels on different sides.
      absl::StrAppend(
          &chart.data,
          absl::StrFormat("%.3f %.4f %d %d %d\n", point.intensity, point.rate,
                          point.rung, layer + 1, i % 4));
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
  if (!contributed.empty()) {
    absl::StrAppend(&chart.data, layers.empty() ? "" : "\n\n", contributed);
    absl::StrAppend(
        &plot, ", '", name, ".dat' index ", layers.size(),
        absl::StrFormat(" using 1:2 with circles lc rgb '%s' title "
                        "'contributed', '' index %d using 1:2:3 with labels "
                        "left offset 0.8,0.6 font ',11' textcolor rgb '%s' "
                        "notitle",
                        kOrange, layers.size(), kOrange));
  }
  const double left = std::min(least_x / 4, 2.0), right = most_x * 8;
  // The roofs: the memory's line up to the arithmetic's.
  std::string roofs;
  double highest = 0;
  const double gbs = peaks.memory_gbs.value_or(0);
  const auto add_roof = [&](const std::optional<double>& tflops, int dash,
                            const char* color, const char* title) {
    if (!tflops) return;
    highest = std::max(highest, *tflops);
    absl::StrAppend(
        &roofs, roofs.empty() ? "" : ", ",
        absl::StrFormat("(x*%.4g<%.4g?x*%.4g:%.4g) lw 2 dt %d lc rgb '%s' "
                        "title '%s'",
                        gbs * 1e-3, *tflops, gbs * 1e-3, *tflops, dash, color,
                        title));
  };
  add_roof(ClassTflops(AccuracyClass::kFp16, peaks), 1, kGreen,
           "tensor cores, one FP16 product");
  add_roof(ClassTflops(AccuracyClass::kFp32, peaks), 3, kGreen,
           "class fp32, three FP16 products");
  add_roof(peaks.fp32_tflops, 2, kGrey, "float32 units");
  chart.script = absl::StrCat(
      Begin(
          name, 580, LadderTitle(ladder),
          3 + static_cast<int>(layers.size()) + (contributed.empty() ? 0 : 1)),
      kCircles, "set logscale xy\nset samples 400\n",
      absl::StrFormat("set xrange [%.3g:%.3g]\nset yrange [%.3g:%.4g]\n", left,
                      right, least_y / 1.6, highest * 1.6),
      "set xlabel 'FLOP per byte that must move'\nset ylabel 'TFLOP/s'\n"
      "set grid lc rgb '#e4e4e4'\n"
      "set format y '%g'\nplot ",
      roofs, plot, "\n");
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
