#include "reports/deliverables/gnuplot.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/status/status.h"
#include "reports/importers/kernel_names.h"

namespace convlab::gnuplot {

std::string Quote(absl::string_view text) {
  // In single quotes, the doubled quote is the only escape.
  return absl::StrCat("'", absl::StrReplaceAll(OneLine(text), {{"'", "''"}}),
                      "'");
}

std::string DataString(absl::string_view text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(OneLine(text), {{"\"", "'"}, {"\\", "/"}}),
      "\"");
}

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

std::string BarName(absl::string_view name) {
  return DataString(ShortKernelName(OneLine(name), 24));
}

std::string BarRows(size_t rows) {
  return absl::StrFormat(
      "set yrange [%.1f:-0.6]\nset style fill solid noborder\nset border 2\n"
      "set ytics scale 0\n",
      static_cast<double>(rows) - 0.4);
}

}  // namespace convlab::gnuplot
