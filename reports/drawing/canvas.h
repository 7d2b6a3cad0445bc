// Charts as SVG: shapes, text and axes. Every element has its colour for paper
// as an attribute and its role as a class, by which a page that is dark gives
// it another one (kDarkRules).
#ifndef REPORTS_DRAWING_CANVAS_H_
#define REPORTS_DRAWING_CANVAS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace convlab::drawing {

// Colours by what they stand for. Blue, orange, green and purple are told apart
// by the colour-blind; shapes tell them apart in grey.
enum class Ink {
  kText,
  kMuted,
  kGrid,
  kPaper,
  kBlue,
  kOrange,
  kGreen,
  kPurple,
  kGrey
};

enum class Shape { kCircle, kSquare, kTriangle, kDiamond, kRing, kBar };

enum class Anchor { kStart, kMiddle, kEnd };

// Sizes of text in pixels. A chart is as wide as a page of A4 between its
// margins, so that 12 pixels are 9 points in print.
inline constexpr double kTextSize = 12, kTitleSize = 13.5;

// The style sheet's rules for pages whose reader prefers dark ones, and for
// drawings that a page's script makes, whose elements have no attributes.
std::string DarkRules();
std::string LightRules();

// A drawing as a file of its own, which carries these rules.
std::string StandaloneFile(const std::string& svg);

// How wide a text is at most, in pixels, in the fonts that charts use.
double TextWidth(absl::string_view text, double size = kTextSize);

// A text on one line that is at most `width` pixels wide.
std::string Shorten(absl::string_view text, double width,
                    double size = kTextSize);

// "0.25", "12.3", "9,843".
std::string Number(double value);

// An axis: values from `low` to `high` at the pixels from `from` to `to`.
struct Scale {
  bool is_log = false;
  double low = 0, high = 1;
  double from = 0, to = 1;

  double At(double value) const;
};

// Values for marks of an axis, about `most` of them: 1, 2 and 5 times powers of
// ten, or powers of ten alone.
std::vector<double> Ticks(const Scale& scale, int most);

class Canvas {
 public:
  // `width` in pixels; the height follows from what is drawn.
  Canvas(double width, absl::string_view description);

  struct Style {
    Ink ink = Ink::kText;
    double size = kTextSize;
    bool is_bold = false;
    Anchor anchor = Anchor::kStart;
  };

  void Line(double x1, double y1, double x2, double y2, Ink ink,
            double thickness = 1, absl::string_view dashes = "");
  void Path(const std::string& points, Ink ink, double thickness,
            absl::string_view dashes = "");
  void Box(double x, double y, double width, double height, Ink ink,
           absl::string_view hover = "");
  // A mark of about 9 pixels, or larger by `scale`.
  void Mark(double x, double y, Shape shape, Ink ink, absl::string_view hover,
            double scale = 1);
  void Text(double x, double y, absl::string_view text, const Style& style);
  // The same on a strip of paper, which hides lines behind it.
  void TextOnPaper(double x, double y, absl::string_view text,
                   const Style& style);

  double width() const { return width_; }
  // Elements of an axis at the bottom: grid lines from `top` to `bottom`, their
  // values and, below, the axis' name.
  void BottomAxis(const Scale& scale, double top, double bottom,
                  absl::string_view name);

  std::string Finish(double height) const;

 private:
  double width_;
  std::string description_, body_;
};

// What stands on top of every chart: title and key. Returns where the drawing
// begins.
struct KeyEntry {
  std::string name;
  Shape shape = Shape::kCircle;
  Ink ink = Ink::kBlue;
};
double DrawHead(Canvas& canvas, absl::string_view title,
                const std::vector<KeyEntry>& key);

}  // namespace convlab::drawing

#endif  // REPORTS_DRAWING_CANVAS_H_
