#include "reports/document/page_style.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "reports/drawing/canvas.h"

namespace convlab {
namespace {

// Tables wider than the screen scroll in a frame of their own, so that the page
// does not; a shadow at the frame's edge shows that there is more. On paper
// they are set small enough to fit. weasyprint knows variables in properties
// such as border-color, not in border.
constexpr char kStyle[] = R"css(
:root { color-scheme: light; --ink: #1b1f24; --muted: #566069;
  --paper: #ffffff; --line: #d9dde3; --code: #f0f2f5; --accent: #1f4e8c;
  --shade: rgba(27, 31, 36, .22); }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 56rem;
  font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; color: var(--ink);
  background-color: var(--paper); overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .8rem; }
h2 { font-size: 1.3rem; margin: 2.2rem 0 .7rem; padding-bottom: .25rem;
  border-bottom: 2px solid; border-bottom-color: var(--accent); }
h3 { font-size: 1.08rem; margin: 1.5rem 0 .5rem; }
h4 { font-size: 1rem; margin: 1.1rem 0 .3rem; }
h2 .up, h3 .up { font-size: .8em; font-weight: normal; text-decoration: none;
  margin-left: .5em; }
p, ul { margin: .55rem 0; }
ul { padding-left: 1.3rem; }
li { margin: .2rem 0; }
code { font: .88em/1.4 ui-monospace, "DejaVu Sans Mono", monospace;
  background-color: var(--code); border-radius: 3px; padding: .05em .25em;
  overflow-wrap: anywhere; }
pre { font: .82rem/1.45 ui-monospace, "DejaVu Sans Mono", monospace;
  background-color: var(--code); border: 1px solid;
  border-color: var(--line); border-radius: 4px;
  padding: .6rem .8rem; overflow-x: auto; margin: .7rem 0; }
a { color: var(--accent); }
.contents { columns: 2 20rem; list-style: none; padding: 0; margin: .8rem 0; }
.contents li { break-inside: avoid; margin: 0 0 .3rem; }
.contents .sub { padding-left: 1.4rem; font-size: .92em; }
.generated { border-left: 3px solid; border-left-color: var(--line);
  padding-left: .7rem; }
ul.generated { padding-left: 1.6rem; }
.generated .by { color: var(--muted); font-size: .78em; float: right;
  margin-left: .8em; }
.table { overflow-x: auto; margin: .7rem 0;
  background:
    linear-gradient(to right, var(--paper) 30%, transparent) left / 2.5rem,
    linear-gradient(to left, var(--paper) 30%, transparent) right / 2.5rem,
    linear-gradient(to right, var(--shade), transparent) left / .7rem,
    linear-gradient(to left, var(--shade), transparent) right / .7rem;
  background-repeat: no-repeat;
  background-attachment: local, local, scroll, scroll; }
.table:focus-visible { outline: 2px solid var(--accent); }
table { border-collapse: collapse; font-size: .88rem; line-height: 1.4;
  font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .5rem; border-bottom: 1px solid; border-bottom-color: var(--line);
  text-align: left; vertical-align: top; }
td { white-space: nowrap; }
td.words { white-space: normal; min-width: 14rem; }
th { border-bottom: 2px solid; border-bottom-color: var(--muted); vertical-align: bottom; }
th.number, td.number { text-align: right; }
th code { white-space: nowrap; }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid var(--accent); }
th[aria-sort=ascending] button::after { content: " \25b2"; }
th[aria-sort=descending] button::after { content: " \25bc"; }
figure { margin: 1rem 0; }
figure svg { display: block; width: 100%; height: auto; }
figure .narrow { display: none; }
figcaption { font-size: .86rem; color: var(--muted); margin-top: .2rem; }
@media (max-width: 36rem) {
  figure .wide { display: none; }
  figure .narrow { display: block; }
  td.words { min-width: 11rem; }
}
)css";

constexpr char kPrintStyle[] = R"css(
@page { size: A4; margin: 13mm 14mm 14mm;
  @bottom-center { content: counter(page) " / " counter(pages);
    font: 8pt "DejaVu Sans", sans-serif; } }
@media print {
  body { padding: 0; max-width: none; font-size: 9pt; line-height: 1.35; }
  h1 { font-size: 15pt; margin-bottom: 2mm; }
  h2 { font-size: 12pt; margin: 4.5mm 0 1.5mm; padding-bottom: .5mm; }
  h3 { font-size: 10pt; margin: 3mm 0 1mm; }
  h4 { font-size: 9pt; margin: 2mm 0 .6mm; }
  h1, h2, h3, h4 { break-after: avoid; }
  .up { display: none; }
  p, ul { margin: 1.1mm 0; orphans: 3; widows: 3; }
  p.generated, li { break-inside: avoid; }
  .end { position: absolute; margin: 0; font-size: 1pt; line-height: 1; }
  .contents { columns: 2; font-size: 8.5pt; margin: 1.5mm 0; }
  .contents li { margin: 0 0 .5mm; }
  figure { margin: 2mm 0; break-inside: avoid; }
  figure .wide { display: block; }
  figure .narrow { display: none; }
  figcaption { font-size: 8pt; margin-top: 0; }
  tr { break-inside: avoid; }
  thead { display: table-header-group; }
  table { font-size: 7.6pt; width: 100%; line-height: 1.3; }
  th, td { padding: .7mm 1.2mm; white-space: normal; }
  td code, td.number { white-space: nowrap; }
  td.words { min-width: 30mm; }
  td.words code { white-space: normal; }
  th button::after { content: none !important; }
  .table { margin: 1.5mm 0; background: none; }
  .dense { font-size: 7pt; }
  .dense th, .dense td { padding: .6mm .8mm; }
  .table, pre { overflow: visible; }
  pre { white-space: pre-wrap; font-size: 7.6pt; padding: 1.5mm 2mm;
    margin: 1.5mm 0; break-before: avoid; orphans: 6; widows: 4; }
}
)css";

// Numbers, which may have commas and a unit, are sorted as such and precede
// other text. Rows that are equal keep their order.
constexpr char kSortScript[] = R"js(
for (const table of document.querySelectorAll("table.sortable")) {
  const value = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = parseFloat(text.replace(/,/g, ""));
    return { text, number: Number.isNaN(number) ? Infinity : number };
  };
  table.querySelectorAll("th").forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th").forEach((h) => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0];
      const rows = [...body.rows].sort((left, right) => {
        const [a, b] = [value(left, column), value(right, column)];
        const order = a.number === b.number ? a.text.localeCompare(b.text)
                                            : a.number < b.number ? -1 : 1;
        return down ? -order : order;
      });
      body.append(...rows);
    });
  });
}
)js";

// kPrintStyle with its lengths multiplied.
std::string PrintStyle(double scale) {
  std::string style;
  absl::string_view rest = kPrintStyle;
  const size_t page = rest.find("@media");  // margins of the page stay
  absl::StrAppend(&style, rest.substr(0, page));
  rest.remove_prefix(page);
  while (!rest.empty()) {
    const size_t begin = rest.find_first_of(".0123456789");
    absl::StrAppend(&style, rest.substr(0, begin));
    if (begin == absl::string_view::npos) break;
    rest.remove_prefix(begin);
    const size_t length =
        std::min(rest.find_first_not_of(".0123456789"), rest.size());
    const absl::string_view number = rest.substr(0, length);
    rest.remove_prefix(length);
    double value = 0;
    const bool is_length =
        absl::StartsWith(rest, "pt") || absl::StartsWith(rest, "mm");
    if (is_length && absl::SimpleAtod(number, &value)) {
      absl::StrAppendFormat(&style, "%.4g", value * scale);
    } else {
      absl::StrAppend(&style, number);
    }
  }
  return style;
}

}  // namespace

std::string PageStyle(double print_scale) {
  return absl::StrCat(
      kStyle,
      "@media screen and (prefers-color-scheme: dark) {\n"
      ":root { color-scheme: dark; --ink: #e6e8eb; --muted: #a6b0ba;\n"
      "  --paper: #14171b; --line: #363d46; --code: #22272e;\n"
      "  --accent: #7fb6f5; --shade: rgba(0, 0, 0, .7); }\n",
      drawing::DarkRules(), "\n}\n", PrintStyle(print_scale));
}

std::string SortScript() { return kSortScript; }

}  // namespace convlab
