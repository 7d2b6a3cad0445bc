// Parts of the scripts and data files that gnuplot draws charts from. Charts
// are 480 pixels wide, which are 358 on a phone: 14 pixels of text become 10.
#ifndef REPORTS_DELIVERABLES_GNUPLOT_H_
#define REPORTS_DELIVERABLES_GNUPLOT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace convlab::gnuplot {

inline constexpr char kBlue[] = "#2f6db5", kRed[] = "#b3342f",
                      kGreen[] = "#2e7d4f", kGrey[] = "#6b7480",
                      kOrange[] = "#c46a00";

// Quotes a string for a script.
std::string Quote(absl::string_view text);

// Quotes a string for a data file, in which quotes cannot be escaped.
std::string DataString(absl::string_view text);

// The beginning of the script of chart `name`. Title and key are at the left,
// one below the other, for any lengths; `key_rows` may be 0.
std::string Begin(const std::string& name, int height, const std::string& title,
                  int key_rows);

// A bar's name as a string of a data file, short enough to leave room for the
// bar.
std::string BarName(absl::string_view name);

// The axis of `rows` horizontal bars, the first on top.
std::string BarRows(size_t rows);

// The style of points: circles, since weasyprint cannot draw the markers of
// gnuplot's SVG.
inline constexpr char kCircles[] =
    "set style circle radius screen 0.008\nset style fill solid noborder\n";

}  // namespace convlab::gnuplot

#endif  // REPORTS_DELIVERABLES_GNUPLOT_H_
