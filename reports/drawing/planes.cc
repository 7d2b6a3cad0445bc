// The charts with two axes: lines over sizes, the roofline, and time.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "reports/drawing/plots.h"

namespace convlab::drawing {
namespace {

// Moves texts apart that stand one above the other: returns for each y, given
// in ascending order, one at least `gap` below the one before, within `top` and
// `bottom` as far as they have room.
std::vector<double> MoveApart(const std::vector<double>& ys, double gap,
                              double top, double bottom) {
  std::vector<double> moved = ys;
  for (size_t i = 0; i < moved.size(); ++i) {
    moved[i] = std::max(moved[i], i == 0 ? top : moved[i - 1] + gap);
  }
  for (size_t i = moved.size(); i-- > 0;) {
    moved[i] =
        std::min(moved[i], i + 1 == moved.size() ? bottom : moved[i + 1] - gap);
  }
  return moved;
}

void LeftAxis(Canvas& canvas, const Scale& scale, double left, double right) {
  for (const double value :
       Ticks(scale,
             std::max(3, static_cast<int>((scale.from - scale.to) / 32)))) {
    const double y = scale.At(value);
    canvas.Line(left, y, right, y, Ink::kGrid);
    canvas.Text(left - 6, y + 4, Number(value),
                {Ink::kMuted, kTextSize, false, Anchor::kEnd});
  }
}

// The widest value of the axis.
double ValuesWidth(const Scale& scale) {
  double needed = 0;
  for (const double value : Ticks(scale, 9)) {
    needed = std::max(needed, TextWidth(Number(value)));
  }
  return needed;
}

// A name that stands beside a mark, and where.
struct Label {
  std::string text;
  double x = 0, y = 0;
  bool is_strong = false;
  Ink ink = Ink::kText;
  bool is_right = false;  // ends at x, instead of standing beside a mark there
};

// Writes the labels beside their marks, moved apart, on one side.
void DrawLabels(Canvas& canvas, std::vector<Label> labels, bool is_left,
                double room, double top, double bottom) {
  std::stable_sort(labels.begin(), labels.end(),
                   [](const Label& a, const Label& b) { return a.y < b.y; });
  std::vector<double> ys;
  ys.reserve(labels.size());
  for (const Label& label : labels) ys.push_back(label.y);
  const std::vector<double> moved = MoveApart(ys, 14, top, bottom);
  const double sign = is_left ? -1 : 1;
  for (size_t i = 0; i < labels.size(); ++i) {
    const Label& label = labels[i];
    if (label.is_right) {
      canvas.TextOnPaper(label.x, moved[i] + 4, label.text,
                         {label.ink, kTextSize, false, Anchor::kEnd});
      continue;
    }
    const double x = label.x + sign * 20;
    if (std::abs(moved[i] - label.y) > 1) {
      canvas.Line(label.x + sign * 6, label.y, x - sign * 2, moved[i],
                  Ink::kGrey, 0.7);
    }
    const bool is_near = std::abs(moved[i] - label.y) <= 1;
    canvas.TextOnPaper(is_near ? label.x + sign * 9 : x, moved[i] + 4,
                       Shorten(label.text, room),
                       {label.ink, kTextSize, label.is_strong,
                        is_left ? Anchor::kEnd : Anchor::kStart});
  }
}

// The axis of intensities: room for the names of the first points on the left
// and of the last ones on the right, and for where the roofs begin.
Scale RoofAxis(const RoofPlot& plot, double left, double width) {
  double least = HUGE_VAL, most = 0, names = 0, ridge = 0;
  for (const RoofPlot::Point& point : plot.points) {
    least = std::min(least, point.intensity);
    most = std::max(most, point.intensity);
    names = std::max(names, TextWidth(point.name) * 1.08);
  }
  for (const RoofPlot::Roof& roof : plot.roofs) {
    ridge = std::max(ridge, roof.rate / plot.slope);
  }
  Scale axis = {/*is_log=*/true, least / 4, std::max(most * 4, ridge * 1.3),
                left, width - 2};
  if (least * 1.2 > most) return axis;
  const double room = std::min(names + 24, (width - left) * 0.4);
  const double pixels =
      (axis.to - axis.from - 2 * room) / std::log(most / least);  // per e-fold
  axis.low = least * std::exp(-room / pixels);
  axis.high = std::max(most * std::exp(room / pixels), ridge * 1.3);
  return axis;
}

}  // namespace

std::string Draw(const LinePlot& plot, double width) {
  Canvas canvas(width, plot.description);
  const double top = DrawHead(canvas, plot.title, {}) + 18;
  double least_x = HUGE_VAL, most_x = 0, least_y = HUGE_VAL, most_y = 0;
  double names = 0;
  for (const LinePlot::Curve& curve : plot.curves) {
    for (const auto& [x, y] : curve.points) {
      least_x = std::min(least_x, x);
      most_x = std::max(most_x, x);
      least_y = std::min(least_y, y);
      most_y = std::max(most_y, y);
    }
    names = std::max(names, TextWidth(curve.name));
  }
  names = std::min(names, width * 0.36);
  const double bottom = top + std::min(260.0, width * 0.6);
  Scale y_axis = {/*is_log=*/true, least_y / 1.3, most_y * 1.3, bottom, top};
  const double left = ValuesWidth(y_axis) + 10;
  const Scale x_axis = {/*is_log=*/true, least_x / 1.15, most_x * 1.15, left,
                        width - names - 18};
  canvas.BottomAxis(x_axis, top, bottom, plot.x_axis);
  LeftAxis(canvas, y_axis, left, x_axis.to);
  canvas.Text(0, top - 8, Shorten(plot.y_axis, width), {Ink::kText});
  std::vector<Label> labels;
  for (const LinePlot::Curve& curve : plot.curves) {
    if (curve.points.empty()) continue;
    std::string path;
    for (const auto& [x, y] : curve.points) {
      absl::StrAppend(&path, path.empty() ? "M" : "L",
                      absl::StrFormat("%.1f %.1f", x_axis.At(x), y_axis.At(y)));
    }
    canvas.Path(path, curve.ink, 2, curve.is_dashed ? "5 4" : "");
    for (const auto& [x, y] : curve.points) {
      canvas.Mark(x_axis.At(x), y_axis.At(y), curve.shape, curve.ink,
                  absl::StrCat(curve.name, ": ", Number(y), ", ", plot.x_axis,
                               ": ", Number(x)));
    }
    labels.push_back({curve.name, x_axis.At(curve.points.back().first),
                      y_axis.At(curve.points.back().second), false, curve.ink});
  }
  DrawLabels(canvas, std::move(labels), /*is_left=*/false, names, top, bottom);
  return canvas.Finish(bottom + 40);
}

std::string Draw(const RoofPlot& plot, double width) {
  Canvas canvas(width, plot.description);
  const double top = DrawHead(canvas, plot.title, plot.series) + 18;
  double least_y = HUGE_VAL, most_y = 0;
  std::map<double, std::vector<const RoofPlot::Point*>> columns;
  for (const RoofPlot::Point& point : plot.points) {
    least_y = std::min(least_y, point.rate);
    most_y = std::max(most_y, point.rate);
    columns[point.intensity].push_back(&point);
  }
  size_t tallest = 0;
  for (const auto& [x, points] : columns) {
    tallest = std::max(tallest, points.size());
  }
  for (const RoofPlot::Roof& roof : plot.roofs) {
    most_y = std::max(most_y, roof.rate);
  }
  const double bottom = top + std::max(width < 500 ? 270.0 : 300.0,
                                       17.0 * static_cast<double>(tallest));
  const Scale y_axis = {/*is_log=*/true, least_y / 1.5, most_y * 1.5, bottom,
                        top};
  const double left = ValuesWidth(y_axis) + 10;
  const Scale x_axis = RoofAxis(plot, left, width);
  canvas.BottomAxis(x_axis, top, bottom, plot.x_axis);
  LeftAxis(canvas, y_axis, left, x_axis.to);
  canvas.Text(0, top - 8, Shorten(plot.y_axis, width), {Ink::kText});
  // The memory's line rises to the highest roof; each roof begins on it.
  double highest = 0;
  std::vector<Label> roofs;
  for (const RoofPlot::Roof& roof : plot.roofs) {
    highest = std::max(highest, roof.rate);
    const double x = std::max(x_axis.At(roof.rate / plot.slope), left);
    const double y = y_axis.At(roof.rate);
    canvas.Line(x, y, x_axis.to, y, Ink::kGreen, 1.8);
    roofs.push_back({Shorten(roof.name, width - left - 4), x_axis.to, y - 9,
                     false, Ink::kGreen, /*is_right=*/true});
  }
  const double begin = std::max(x_axis.low, y_axis.low / plot.slope);
  canvas.Line(x_axis.At(begin), y_axis.At(begin * plot.slope),
              x_axis.At(highest / plot.slope), y_axis.At(highest), Ink::kGreen,
              1.8);
  canvas.Text(left + 6, top + 34,
              Shorten(plot.slope_name, x_axis.At(highest / plot.slope) - left),
              {Ink::kGreen});
  for (const auto& [name, intensity] : plot.columns) {
    canvas.Line(x_axis.At(intensity), top, x_axis.At(intensity), bottom,
                Ink::kGrid, 1, "2 3");
    canvas.Text(x_axis.At(intensity), bottom - 5, Shorten(name, width / 3),
                {Ink::kMuted, kTextSize, false, Anchor::kMiddle});
  }
  // Names of the left columns stand on the left, those of the last on the
  // right.
  size_t column = 0;
  for (const auto& [intensity, points] : columns) {
    const bool is_left = ++column < columns.size();
    const double x = x_axis.At(intensity);
    std::vector<Label> labels;
    if (!is_left) labels = roofs;
    for (const RoofPlot::Point* point : points) {
      const KeyEntry& series = plot.series[point->series];
      labels.push_back({point->name, x, y_axis.At(point->rate),
                        point->is_strong, Ink::kText});
      canvas.Mark(x, y_axis.At(point->rate), series.shape, series.ink,
                  point->hover, point->is_strong ? 1.25 : 1);
    }
    DrawLabels(canvas, std::move(labels), is_left,
               is_left ? x - left - 22 : x_axis.to - x - 22, top + 8,
               bottom - 24);
  }
  return canvas.Finish(bottom + 40);
}

std::string Draw(const SpanPlot& plot, double width) {
  // Where the rows after the first are idle.
  std::vector<std::pair<double, double>> busy;
  double end = 0;
  for (size_t row = 0; row < plot.rows.size(); ++row) {
    for (const SpanPlot::Span& span : plot.rows[row].spans) {
      end = std::max(end, span.end);
      if (row > 0) busy.emplace_back(span.start, span.end);
    }
  }
  std::sort(busy.begin(), busy.end());
  std::vector<std::pair<double, double>> cuts;
  double free_from = 0, cut = 0;
  busy.emplace_back(end, end);
  for (const auto& [from, to] : busy) {
    constexpr double kLong = 0.2, kKept = 0.02;  // of the whole
    if (from - free_from > kLong * end) {
      cuts.emplace_back(free_from + kKept * end, from - kKept * end);
      cut += cuts.back().second - cuts.back().first;
    }
    free_from = std::max(free_from, to);
  }
  constexpr double kMark = 26;
  double labels = 0;
  for (const SpanPlot::Row& row : plot.rows) {
    labels = std::max(labels, TextWidth(row.label));
  }
  const double left = labels + 10;
  const double scale =
      (width - 2 - left - kMark * static_cast<double>(cuts.size())) /
      std::max(end - cut, 1e-9);
  const auto at = [&](double ms) {
    double x = left + ms * scale;
    for (const auto& [from, to] : cuts) {
      if (ms >= to) {
        x += kMark - (to - from) * scale;
      } else if (ms > from) {
        x += (ms - from) * (kMark / (to - from) - scale);
      }
    }
    return x;
  };
  Canvas canvas(width, plot.description);
  const double top = DrawHead(canvas, plot.title, {}) + (cuts.empty() ? 0 : 16);
  constexpr double kRow = 34;
  const double bottom = top + kRow * static_cast<double>(plot.rows.size());
  double free = 0;
  const Scale ticks = {/*is_log=*/false, 0, end, left, width};
  const int most = static_cast<int>(
      (width - left) / 60 * std::min(8.0, end / std::max(end - cut, 1e-9)));
  for (const double value : Ticks(ticks, std::max(most, 3))) {
    const bool is_cut =
        std::any_of(cuts.begin(), cuts.end(), [&](const auto& one) {
          return value > one.first && value < one.second;
        });
    const std::string text = Number(value);
    const double x = at(value);
    if (is_cut || x - TextWidth(text) / 2 < free ||
        x + TextWidth(text) / 2 > width) {
      continue;
    }
    free = x + TextWidth(text) / 2 + 8;
    canvas.Line(x, top, x, bottom, Ink::kGrid);
    canvas.Text(x, bottom + 16, text,
                {Ink::kMuted, kTextSize, false, Anchor::kMiddle});
  }
  for (size_t row = 0; row < plot.rows.size(); ++row) {
    const double y = top + kRow * static_cast<double>(row);
    canvas.Text(0, y + kRow / 2 + 4, plot.rows[row].label, {Ink::kText});
    canvas.Line(left, y + kRow, width - 2, y + kRow, Ink::kGrid);
    for (const SpanPlot::Span& span : plot.rows[row].spans) {
      const double x = at(span.start);
      canvas.Box(x, y + 6, at(span.end) - x, kRow - 12, plot.rows[row].ink,
                 span.hover);
    }
  }
  for (const auto& [from, to] : cuts) {
    const double x = at(from);
    canvas.Box(x + 4, top, kMark - 8, bottom - top, Ink::kPaper);
    for (const double side : {x + 4, x + kMark - 4}) {
      std::string zigzag = absl::StrFormat("M%.1f %.1f", side, top);
      for (double y = top + 6; y <= bottom + 0.1; y += 6) {
        const bool is_odd = std::fmod((y - top) / 6, 2) > 0.5;
        absl::StrAppendFormat(&zigzag, "L%.1f %.1f", side + (is_odd ? 3 : 0),
                              y);
      }
      canvas.Path(zigzag, Ink::kGrey, 1);
    }
    const std::string text = absl::StrCat(Number(to - from), " ms cut");
    const double half = TextWidth(text) / 2;
    canvas.Text(std::clamp(x + kMark / 2, half, width - half), top - 6, text,
                {Ink::kMuted, kTextSize, false, Anchor::kMiddle});
  }
  canvas.Text(width, bottom + 33, Shorten(plot.axis, width),
              {Ink::kText, kTextSize, false, Anchor::kEnd});
  return canvas.Finish(bottom + 40);
}

}  // namespace convlab::drawing
