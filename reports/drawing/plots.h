// The forms of charts: dots on an axis, bars from zero, lines over sizes, a
// roofline, and spans of time. Each is a description that is drawn at any
// width: labels beside their marks, and every mark with its value on hover.
#ifndef REPORTS_DRAWING_PLOTS_H_
#define REPORTS_DRAWING_PLOTS_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "reports/drawing/canvas.h"

namespace convlab::drawing {

// The widths of a chart in pixels: on paper and a desktop's screen, and on a
// phone's.
inline constexpr double kWide = 688, kNarrow = 358;

// A row for each thing, with a dot for each of its values on one logarithmic
// axis. Values are positive.
struct DotPlot {
  struct Dot {
    size_t series = 0;
    double value = 0;
    std::string hover;
  };
  struct Row {
    std::string label;
    std::vector<Dot> dots;
    std::string beside;  // text behind the last dot
    bool is_strong = false;
  };
  // A vertical line through all rows.
  struct Reference {
    std::string label;
    double value = 0;
    Ink ink = Ink::kGreen;
  };
  std::string title, description, axis;
  std::vector<KeyEntry> series;
  std::vector<Row> rows;
  std::vector<Reference> references;
  // What the axis covers besides the values; 0: nothing.
  double least = 0, most = 0;
};
std::string Draw(const DotPlot& plot, double width);

// A bar from zero for each value, which is not negative.
struct BarPlot {
  struct Bar {
    std::string label;
    double value = 0;
    std::string text;  // behind the bar
    Ink ink = Ink::kBlue;
    std::string hover;
  };
  std::string title, description, axis;
  std::vector<Bar> bars;
};
std::string Draw(const BarPlot& plot, double width);

// One bar of all values, whose parts a list below names.
struct StackPlot {
  struct Part {
    std::string label;
    double value = 0;
    std::string text;  // the value with its unit
  };
  std::string title, description;
  std::vector<Part> parts;
};
std::string Draw(const StackPlot& plot, double width);

// Small panels, each with two bars from zero: a quantity before and after.
struct PanelPlot {
  struct Panel {
    std::string name;
    double before = 0, after = 0;
    std::string before_text, after_text;
  };
  std::string title, description;
  std::string before, after;  // what is compared
  std::vector<Panel> panels;
};
std::string Draw(const PanelPlot& plot, double width);

// Lines through points, both axes logarithmic, each named at its end. Values
// are positive, and some line has a point.
struct LinePlot {
  struct Curve {
    std::string name;
    Ink ink = Ink::kBlue;
    Shape shape = Shape::kCircle;
    bool is_dashed = false;
    std::vector<std::pair<double, double>> points;
  };
  std::string title, description, x_axis, y_axis;
  std::vector<Curve> curves;
};
std::string Draw(const LinePlot& plot, double width);

// Rates against intensities, both logarithmic, each point with its name, under
// roofs that rise with the memory's rate up to their own.
struct RoofPlot {
  struct Point {
    std::string name;
    size_t series = 0;
    double intensity = 0, rate = 0;
    bool is_strong = false;
    std::string hover;
  };
  struct Roof {
    std::string name;
    double rate = 0;
  };
  std::string title, description, x_axis, y_axis;
  std::vector<KeyEntry> series;
  std::vector<Point> points;
  std::vector<Roof> roofs;
  // Names of intensities, which stand at the axis.
  std::vector<std::pair<std::string, double>> columns;
  double slope = 0;  // the rate per unit of intensity
  std::string slope_name;
};
std::string Draw(const RoofPlot& plot, double width);

// Rows of boxes over time. Stretches in which no row but the first has a box
// are cut where they are long, and a mark says how long they are.
struct SpanPlot {
  struct Span {
    double start = 0, end = 0;  // ms
    std::string hover;
  };
  struct Row {
    std::string label;
    Ink ink = Ink::kBlue;
    std::vector<Span> spans;  // sorted by start
  };
  std::string title, description, axis;
  std::vector<Row> rows;
};
std::string Draw(const SpanPlot& plot, double width);

}  // namespace convlab::drawing

#endif  // REPORTS_DRAWING_PLOTS_H_
