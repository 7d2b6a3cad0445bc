#include "reports/drawing/canvas.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace convlab::drawing {
namespace {

struct Colour {
  const char* name;
  const char* light;
  const char* dark;
};

// In the order of Ink. Of Okabe and Ito's colours, darkened until text in them
// has a contrast of 4.5 on paper.
constexpr Colour kColours[] = {
    {"text", "#1b1f24", "#e6e8eb"},  {"muted", "#566069", "#a6b0ba"},
    {"grid", "#dde1e6", "#363d46"},  {"paper", "#ffffff", "#14171b"},
    {"blue", "#0067a8", "#62b6ee"},  {"orange", "#b54708", "#ff9f5e"},
    {"green", "#00724f", "#45c79c"}, {"purple", "#8a3f83", "#dfa3d7"},
    {"grey", "#6b7480", "#98a2ae"},
};

const Colour& ColourOf(Ink ink) { return kColours[static_cast<size_t>(ink)]; }

std::string Fill(Ink ink) {
  return absl::StrCat("class=\"f-", ColourOf(ink).name, "\" fill=\"",
                      ColourOf(ink).light, "\"");
}

std::string Stroke(Ink ink, double thickness, absl::string_view dashes) {
  return absl::StrCat(
      "class=\"s-", ColourOf(ink).name, "\" stroke=\"", ColourOf(ink).light,
      "\" stroke-width=\"", thickness, "\"",
      dashes.empty() ? "" : absl::StrCat(" stroke-dasharray=\"", dashes, "\""));
}

// A pixel's tenth is enough.
std::string Px(double pixels) {
  std::string text = absl::StrFormat("%.1f", pixels);
  if (absl::EndsWith(text, ".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string Escape(absl::string_view text) {
  return EscapeMarkup(OneLine(text));
}

// In ems, of DejaVu Sans, the widest of the fonts.
double CharacterWidth(char c) {
  if (absl::StrContains("ijlI.,:;'|!", c)) return 0.34;
  if (absl::StrContains(" ()[]-/\\\"ftr", c)) return 0.40;
  if (absl::StrContains("mwMW%@", c)) return 0.94;
  return c >= 'A' && c <= 'Z' ? 0.72 : 0.64;
}

bool ContinuesCharacter(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

std::string Rules(const char* Colour::*shade) {
  std::string rules;
  for (const Colour& colour : kColours) {
    absl::StrAppend(&rules, "svg .f-", colour.name, "{fill:", colour.*shade,
                    "}svg .s-", colour.name, "{stroke:", colour.*shade, "}");
  }
  return rules;
}

}  // namespace

std::string DarkRules() { return Rules(&Colour::dark); }

std::string LightRules() { return Rules(&Colour::light); }

std::string StandaloneFile(const std::string& svg) {
  const size_t begin = svg.find('>') + 1;  // of what is in the element
  return absl::StrCat(svg.substr(0, begin),
                      "\n<style>@media (prefers-color-scheme: dark) {",
                      DarkRules(), "}</style>", svg.substr(begin));
}

double TextWidth(absl::string_view text, double size) {
  double ems = 0;
  for (const char c : text)
    ems += ContinuesCharacter(c) ? 0 : CharacterWidth(c);
  return ems * size;
}

std::string Shorten(absl::string_view text, double width, double size) {
  std::string line = OneLine(text);
  if (TextWidth(line, size) <= width) return line;
  constexpr char kEllipsis[] = "…";
  while (!line.empty() &&
         TextWidth(line, size) + CharacterWidth('m') * size > width) {
    while (line.size() > 1 && ContinuesCharacter(line.back())) line.pop_back();
    line.pop_back();
  }
  return line + kEllipsis;
}

std::string Number(double value) {
  std::string text = std::abs(value) >= 99.5 ? absl::StrFormat("%.0f", value)
                                             : absl::StrFormat("%.3g", value);
  const size_t begin = absl::StartsWith(text, "-") ? 1 : 0;
  if (std::abs(value) < 999.5) return text;
  for (size_t end = text.size(); end > begin + 3; end -= 3) {
    text.insert(end - 3, ",");
  }
  return text;
}

double Scale::At(double value) const {
  const double share = is_log ? std::log(std::max(value, low * 1e-9) / low) /
                                    std::log(high / low)
                              : (value - low) / (high - low);
  return from + share * (to - from);
}

std::vector<double> Ticks(const Scale& scale, int most) {
  std::vector<double> ticks;
  const bool is_range = std::isfinite(scale.high - scale.low) &&
                        scale.low < scale.high &&
                        (!scale.is_log || scale.low > 0);
  if (!is_range) return ticks;
  const auto inside = [&](double value) {
    return value >= scale.low * (1 - 1e-9) && value <= scale.high * (1 + 1e-9);
  };
  if (!scale.is_log) {
    const double rough = (scale.high - scale.low) / std::max(most, 1);
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor * power >= rough * 0.999) {
        step = factor * power;
        break;
      }
    }
    for (double i = std::ceil(scale.low / step); inside(i * step); ++i) {
      ticks.push_back(i * step);
    }
    return ticks;
  }
  const int first = static_cast<int>(std::floor(std::log10(scale.low)));
  const int last = static_cast<int>(std::ceil(std::log10(scale.high)));
  const auto mark = [&](const std::vector<double>& factors) {
    std::vector<double> marks;
    for (int power = first; power <= last; ++power) {
      for (const double factor : factors) {
        const double value = factor * std::pow(10, power);
        if (inside(value)) marks.push_back(value);
      }
    }
    return marks;
  };
  for (const std::vector<double>& factors :
       {std::vector<double>{1, 2, 5}, {1, 3}, {1}}) {
    ticks = mark(factors);
    if (ticks.size() <= static_cast<size_t>(most)) break;
  }
  // One or two do not show what a narrow range's scale is.
  if (ticks.size() >= 3) return ticks;
  for (const std::vector<double>& factors :
       {std::vector<double>{1, 1.5, 2, 3, 4, 5, 6, 7, 8},
        {1, 1.5, 2, 3, 5, 7}}) {
    std::vector<double> more = mark(factors);
    if (more.size() <= static_cast<size_t>(most)) return more;
  }
  return ticks;
}

Canvas::Canvas(double width, absl::string_view description)
    : width_(width), description_(Escape(description)) {}

void Canvas::Line(double x1, double y1, double x2, double y2, Ink ink,
                  double thickness, absl::string_view dashes) {
  absl::StrAppend(&body_, "<path d=\"M", Px(x1), " ", Px(y1), "L", Px(x2), " ",
                  Px(y2), "\" ", Stroke(ink, thickness, dashes), "/>\n");
}

void Canvas::Path(const std::string& points, Ink ink, double thickness,
                  absl::string_view dashes) {
  absl::StrAppend(&body_, "<path d=\"", points, "\" fill=\"none\" ",
                  Stroke(ink, thickness, dashes),
                  " stroke-linejoin=\"round\"/>\n");
}

void Canvas::Box(double x, double y, double width, double height, Ink ink,
                 absl::string_view hover) {
  const std::string tip =
      hover.empty() ? ""
                    : absl::StrCat("><title>", Escape(hover), "</title></rect");
  absl::StrAppend(&body_, "<rect x=\"", Px(x), "\" y=\"", Px(y), "\" width=\"",
                  Px(std::max(width, 0.6)), "\" height=\"", Px(height), "\" ",
                  Fill(ink), tip, tip.empty() ? "/>\n" : ">\n");
}

void Canvas::Mark(double x, double y, Shape shape, Ink ink,
                  absl::string_view hover, double scale) {
  const double r = 4.6 * scale;
  std::string d;
  const auto polygon =
      [&](std::initializer_list<std::pair<double, double>> at) {
        for (const auto& [dx, dy] : at) {
          absl::StrAppend(&d, d.empty() ? "M" : "L", Px(x + dx), " ",
                          Px(y + dy));
        }
        d += "Z";
      };
  switch (shape) {
    case Shape::kCircle:
    case Shape::kRing:
      // Of four Bezier curves, which every renderer draws round.
      for (int quarter = 0; quarter < 4; ++quarter) {
        constexpr double kBend = 0.5523;
        constexpr int kX[] = {1, 0, -1, 0, 1}, kY[] = {0, 1, 0, -1, 0};
        const int from_x = kX[quarter], from_y = kY[quarter];
        const int to_x = kX[quarter + 1], to_y = kY[quarter + 1];
        if (quarter == 0) absl::StrAppend(&d, "M", Px(x + r), " ", Px(y));
        absl::StrAppend(&d, "C", Px(x + r * (from_x + kBend * to_x)), " ",
                        Px(y + r * (from_y + kBend * to_y)), " ",
                        Px(x + r * (to_x + kBend * from_x)), " ",
                        Px(y + r * (to_y + kBend * from_y)), " ",
                        Px(x + r * to_x), " ", Px(y + r * to_y));
      }
      d += "Z";
      break;
    case Shape::kSquare:
      polygon({{-r, -r}, {r, -r}, {r, r}, {-r, r}});
      break;
    case Shape::kTriangle:
      polygon({{0, -1.2 * r}, {1.15 * r, r}, {-1.15 * r, r}});
      break;
    case Shape::kDiamond:
      polygon({{0, -1.4 * r}, {1.4 * r, 0}, {0, 1.4 * r}, {-1.4 * r, 0}});
      break;
    case Shape::kBar:
      polygon({{-0.3 * r, -1.5 * r},
               {0.3 * r, -1.5 * r},
               {0.3 * r, 1.5 * r},
               {-0.3 * r, 1.5 * r}});
      break;
  }
  absl::StrAppend(
      &body_, "<path d=\"", d, "\" ",
      shape == Shape::kRing ? absl::StrCat("fill=\"none\" ", Stroke(ink, 2, ""))
                            : Fill(ink),
      hover.empty()
          ? "/>\n"
          : absl::StrCat("><title>", Escape(hover), "</title></path>\n"));
}

void Canvas::Text(double x, double y, absl::string_view text,
                  const Style& style) {
  constexpr const char* kAnchors[] = {"start", "middle", "end"};
  absl::StrAppend(
      &body_, "<text x=\"", Px(x), "\" y=\"", Px(y), "\" font-size=\"",
      style.size, "\" ", Fill(style.ink),
      style.is_bold ? " font-weight=\"bold\"" : "",
      style.anchor == Anchor::kStart
          ? ""
          : absl::StrCat(" text-anchor=\"",
                         kAnchors[static_cast<size_t>(style.anchor)], "\""),
      ">", Escape(text), "</text>\n");
}

void Canvas::TextOnPaper(double x, double y, absl::string_view text,
                         const Style& style) {
  const double width = TextWidth(text, style.size) * (style.is_bold ? 1.08 : 1);
  const double left = style.anchor == Anchor::kStart ? x
                      : style.anchor == Anchor::kEnd ? x - width
                                                     : x - width / 2;
  Box(left - 2, y - 0.85 * style.size, width + 4, 1.15 * style.size,
      Ink::kPaper);
  Text(x, y, text, style);
}

void Canvas::BottomAxis(const Scale& scale, double top, double bottom,
                        absl::string_view name) {
  double free = scale.from - 1e3;  // where the next value may begin
  for (const double value :
       Ticks(scale,
             std::max(3, static_cast<int>((scale.to - scale.from) / 55)))) {
    const double x = scale.At(value);
    Line(x, top, x, bottom, Ink::kGrid);
    const std::string text = Number(value);
    const double half = TextWidth(text) / 2;
    if (x - half < free) continue;
    free = x + half + 6;
    Text(x, bottom + 16, text,
         {Ink::kMuted, kTextSize, false, Anchor::kMiddle});
  }
  Line(scale.from, bottom, scale.to, bottom, Ink::kGrey);
  Text(scale.to, bottom + 33, Shorten(name, width_ - 8),
       {Ink::kText, kTextSize, false, Anchor::kEnd});
}

std::string Canvas::Finish(double height) const {
  return absl::StrCat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", Px(width_),
      " ", Px(height), "\" width=\"", Px(width_), "\" height=\"", Px(height),
      "\" role=\"img\" aria-label=\"", description_,
      "\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\">\n"
      "<rect width=\"100%\" height=\"100%\" ",
      Fill(Ink::kPaper), "/>\n", body_, "</svg>\n");
}

double DrawHead(Canvas& canvas, absl::string_view title,
                const std::vector<KeyEntry>& key) {
  double y = 16;
  canvas.Text(0, y, Shorten(title, canvas.width(), kTitleSize * 1.08),
              {Ink::kText, kTitleSize, /*is_bold=*/true, Anchor::kStart});
  double x = 0;
  if (!key.empty()) y += 20;
  for (const KeyEntry& entry : key) {
    const std::string name = Shorten(entry.name, canvas.width() - 30);
    const double needed = 18 + TextWidth(name);
    if (x > 0 && x + needed > canvas.width()) {
      x = 0;
      y += 17;
    }
    canvas.Mark(x + 6, y - 4, entry.shape, entry.ink, "");
    canvas.Text(x + 16, y, name, {Ink::kText});
    x += needed + 16;
  }
  return y + 12;
}

}  // namespace convlab::drawing
