// The charts whose things stand in rows: dots, bars, stacks and panels.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "reports/drawing/plots.h"

namespace convlab::drawing {
namespace {

constexpr double kRow = 21;

// The width of the column of labels: what they need, at most a share of the
// chart.
template <typename Rows>
double LabelWidth(const Rows& rows, double width) {
  double needed = 0;
  for (const auto& row : rows) {
    needed = std::max(needed, TextWidth(row.label) * 1.06);
  }
  return std::min(needed, width * 0.44);
}

constexpr Ink kCycle[] = {Ink::kBlue,   Ink::kOrange, Ink::kGreen,
                          Ink::kPurple, Ink::kGrey,   Ink::kText};

}  // namespace

std::string Draw(const DotPlot& plot, double width) {
  Canvas canvas(width, plot.description);
  double y = DrawHead(canvas, plot.title, plot.series) + 2;
  double least = plot.least > 0 ? plot.least : HUGE_VAL;
  double most = plot.most, beside = 0;
  for (const DotPlot::Row& row : plot.rows) {
    for (const DotPlot::Dot& dot : row.dots) {
      least = std::min(least, dot.value);
      most = std::max(most, dot.value);
    }
    beside = std::max(beside, TextWidth(row.beside) * 1.06);
  }
  for (const DotPlot::Reference& line : plot.references) {
    least = std::min(least, line.value);
    most = std::max(most, line.value);
  }
  if (most <= 0) least = most = 1;
  const double labels = LabelWidth(plot.rows, width);
  const Scale scale = {/*is_log=*/true, least / 1.15, most * 1.15, labels + 12,
                       width - beside - 16};
  const double names = y;  // of the vertical lines, one below the other
  constexpr double kName = 16;
  const double top =
      names + kName * static_cast<double>(plot.references.size()) + 2;
  const double bottom = top + kRow * static_cast<double>(plot.rows.size()) + 4;
  canvas.BottomAxis(scale, top, bottom, plot.axis);
  for (size_t i = 0; i < plot.references.size(); ++i) {
    const DotPlot::Reference& line = plot.references[i];
    const double x = scale.At(line.value);
    canvas.Line(x, names + kName * static_cast<double>(i) + 2, x, bottom,
                line.ink, 1.6, line.ink == Ink::kGreen ? "2 3" : "6 3");
  }
  for (size_t i = 0; i < plot.references.size(); ++i) {
    const DotPlot::Reference& line = plot.references[i];
    const double x = scale.At(line.value);
    const std::string text = absl::StrCat(line.label, ": ", Number(line.value));
    const bool is_left = x + TextWidth(text) + 8 > width;
    canvas.TextOnPaper(
        is_left ? x - 5 : x + 5, names + kName * static_cast<double>(i + 1) - 4,
        Shorten(text, width * 0.9),
        {line.ink, kTextSize, false, is_left ? Anchor::kEnd : Anchor::kStart});
  }
  y = top + kRow / 2;
  for (const DotPlot::Row& row : plot.rows) {
    canvas.Text(0, y + 4, Shorten(row.label, labels),
                {Ink::kText, kTextSize, row.is_strong, Anchor::kStart});
    canvas.Line(labels + 8, y, scale.to, y, Ink::kGrid, 1, "1 3");
    double last = scale.from;
    for (const DotPlot::Dot& dot : row.dots) {
      const KeyEntry& series = plot.series[dot.series];
      const double x = scale.At(dot.value);
      canvas.Mark(x, y, series.shape, series.ink, dot.hover,
                  row.is_strong ? 1.25 : 1);
      last = std::max(last, x);
    }
    if (!row.beside.empty()) {
      canvas.TextOnPaper(
          last + 9, y + 4, row.beside,
          {Ink::kText, kTextSize, row.is_strong, Anchor::kStart});
    }
    y += kRow;
  }
  return canvas.Finish(bottom + 40);
}

std::string Draw(const BarPlot& plot, double width) {
  Canvas canvas(width, plot.description);
  const double top = DrawHead(canvas, plot.title, {});
  double most = 0, texts = 0;
  for (const BarPlot::Bar& bar : plot.bars) {
    most = std::max(most, bar.value);
    texts = std::max(texts, TextWidth(bar.text));
  }
  const double labels = LabelWidth(plot.bars, width);
  const Scale scale = {/*is_log=*/false, 0, most > 0 ? most : 1, labels + 10,
                       width - texts - 14};
  const double bottom = top + kRow * static_cast<double>(plot.bars.size()) + 4;
  canvas.BottomAxis(scale, top, bottom, plot.axis);
  double y = top + kRow / 2 + 1;
  for (const BarPlot::Bar& bar : plot.bars) {
    canvas.Text(0, y + 4, Shorten(bar.label, labels), {Ink::kText});
    const double end = scale.At(bar.value);
    canvas.Box(scale.from, y - 7, end - scale.from, 14, bar.ink,
               bar.hover.empty() ? bar.text : bar.hover);
    canvas.Text(end + 6, y + 4, bar.text, {Ink::kText});
    y += kRow;
  }
  return canvas.Finish(bottom + 40);
}

std::string Draw(const StackPlot& plot, double width) {
  Canvas canvas(width, plot.description);
  double y = DrawHead(canvas, plot.title, {});
  double total = 0;
  for (const StackPlot::Part& part : plot.parts) total += part.value;
  if (total <= 0) total = 1;
  constexpr double kBar = 26;
  double x = 0;
  for (size_t i = 0; i < plot.parts.size(); ++i) {
    const StackPlot::Part& part = plot.parts[i];
    const double length = part.value / total * width;
    canvas.Box(x, y, std::max(length - 1.5, 0.6), kBar,
               kCycle[i % std::size(kCycle)],
               absl::StrCat(part.label, ": ", part.text));
    const std::string share =
        absl::StrFormat("%.0f %%", 100 * part.value / total);
    if (length > TextWidth(share) + 10) {
      canvas.Text(x + length / 2, y + kBar / 2 + 4, share,
                  {Ink::kPaper, kTextSize, true, Anchor::kMiddle});
    }
    x += length;
  }
  y += kBar + 20;
  double at = 0;
  for (size_t i = 0; i < plot.parts.size(); ++i) {
    const StackPlot::Part& part = plot.parts[i];
    const std::string text = Shorten(
        absl::StrCat(i + 1, " ", part.label, ", ", part.text), width - 24);
    const double needed = TextWidth(text) + 20;
    if (at > 0 && at + needed > width) {
      at = 0;
      y += 18;
    }
    canvas.Mark(at + 6, y - 4, Shape::kSquare, kCycle[i % std::size(kCycle)],
                "");
    canvas.Text(at + 15, y, text, {Ink::kText});
    at += needed + 14;
  }
  return canvas.Finish(y + 10);
}

std::string Draw(const PanelPlot& plot, double width) {
  Canvas canvas(width, plot.description);
  const double top = DrawHead(canvas, plot.title,
                              {{plot.before, Shape::kSquare, Ink::kGrey},
                               {plot.after, Shape::kSquare, Ink::kBlue}});
  const int columns = width < 500 ? 2 : 4;
  const double gap = 18;
  const double panel = (width - gap * (columns - 1)) / columns;
  constexpr double kPanel = 66;
  const auto count = static_cast<int>(plot.panels.size());
  for (int i = 0; i < count; ++i) {
    const PanelPlot::Panel& one = plot.panels[i];
    const int row_above = i / columns;
    const double x = (i % columns) * (panel + gap);
    const double y = top + row_above * kPanel;
    canvas.Text(x, y + 12, Shorten(one.name, panel), {Ink::kText});
    const double texts =
        std::max(TextWidth(one.before_text), TextWidth(one.after_text)) + 6;
    const Scale scale = {/*is_log=*/false, 0,
                         std::max({one.before, one.after, 1e-12}), x,
                         x + panel - texts};
    double row = y + 19;
    for (const bool is_after : {false, true}) {
      const double end = scale.At(is_after ? one.after : one.before);
      const std::string& text = is_after ? one.after_text : one.before_text;
      canvas.Box(x, row, end - x, 13, is_after ? Ink::kBlue : Ink::kGrey,
                 absl::StrCat(is_after ? plot.after : plot.before, ": ", text));
      canvas.Text(end + 4, row + 11, text, {Ink::kText});
      row += 17;
    }
  }
  const int rows = (count + columns - 1) / columns;
  return canvas.Finish(top + kPanel * rows);
}

}  // namespace convlab::drawing
