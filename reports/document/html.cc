#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"
#include "reports/document/writers.h"

namespace convlab {
namespace {

// Tables wider than the screen scroll in a frame of their own, so that the page
// does not. On paper they are set small enough to fit.
constexpr char kStyle[] = R"css(
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 66rem;
  font: 16px/1.55 system-ui, "DejaVu Sans", sans-serif; color: #1b1f24;
  background: #fff; overflow-wrap: break-word; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.35rem; margin: 2.6rem 0 .8rem; padding-bottom: .3rem;
  border-bottom: 2px solid #1f4e8c; }
h3 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
h4 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
p, ul { max-width: 60rem; }
p { margin: .6rem 0; }
ul { margin: .6rem 0; padding-left: 1.3rem; }
li { margin: .2rem 0; }
code { font: .88em/1.4 ui-monospace, "DejaVu Sans Mono", monospace;
  background: #f0f2f5; border-radius: 3px; padding: .05em .25em;
  overflow-wrap: anywhere; }
pre { font: .82rem/1.45 ui-monospace, "DejaVu Sans Mono", monospace;
  background: #f6f7f9; border: 1px solid #d9dde3; border-radius: 4px;
  padding: .7rem .9rem; overflow-x: auto; margin: .8rem 0; }
a { color: #1f4e8c; }
.table { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .88rem; line-height: 1.4;
  font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .55rem; border-bottom: 1px solid #d9dde3;
  text-align: left; vertical-align: top; }
td { white-space: nowrap; }
td.words { white-space: normal; min-width: 15rem; }
th { border-bottom: 2px solid #8a94a3; vertical-align: bottom; }
th.number, td.number { text-align: right; }
figure { margin: 1.2rem 0; }
figure img { display: block; width: 100%; max-width: 36rem; height: auto; }
figcaption { font-size: .88rem; color: #4a5360; margin-top: .4rem; }
@media (max-width: 30rem) { td.words { min-width: 11rem; } }
@page { size: A4; margin: 16mm 14mm;
  @bottom-center { content: counter(page); font: 8pt sans-serif; } }
@media print {
  body { padding: 0; max-width: none; font-size: 9.5pt; line-height: 1.4; }
  h1 { font-size: 17pt; } h2 { font-size: 13pt; } h3 { font-size: 11pt; }
  h1, h2, h3, h4 { break-after: avoid; }
  figure, tr, pre { break-inside: avoid; }
  figure img { max-width: 12cm; }
  figcaption { font-size: 8.5pt; }
  table { font-size: 7.5pt; }
  th, td { padding: 1.2mm 1.5mm; }
  td { white-space: normal; }
  td code, td.number { white-space: nowrap; }
  td.words { min-width: 30mm; }
  td.words code { white-space: normal; }
  .table, pre { overflow: visible; }
  pre { white-space: pre-wrap; font-size: 7.5pt; }
}
)css";

// The heading of a column that sorts is a button, so that keys reach it.
constexpr char kSortStyle[] = R"css(
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid #1f4e8c; }
th[aria-sort=ascending] button::after { content: " \\25b2"; }
th[aria-sort=descending] button::after { content: " \\25bc"; }
@media print { th button::after { content: none !important; } }
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

std::string Inline(const Text& text) {
  std::string line;
  for (const Span& span : text.spans()) {
    const std::string escaped = EscapeHtml(span.text);
    switch (span.kind) {
      case Span::Kind::kPlain:
        line += escaped;
        break;
      case Span::Kind::kCode:
        absl::StrAppend(&line, "<code>", escaped, "</code>");
        break;
      case Span::Kind::kStrong:
        absl::StrAppend(&line, "<strong>", escaped, "</strong>");
        break;
      case Span::Kind::kLink:
        absl::StrAppend(&line, "<a href=\"", EscapeHtml(EscapeUrl(span.target)),
                        "\">", escaped, "</a>");
        break;
    }
  }
  return line;
}

// A cell is a number, a name, or text that may be broken into lines.
std::string CellClass(const Table& table, size_t column, const Text& cell) {
  size_t length = 0;
  for (const Span& span : cell.spans()) length += span.text.size();
  constexpr size_t kShort = 30;
  if (length > kShort) return " class=\"words\"";
  return table.columns[column].number ? " class=\"number\"" : "";
}

struct Writer {
  const Drawings& drawings;

  std::string operator()(const Heading& heading) const {
    return absl::StrCat(
        "<h", heading.level,
        heading.id.empty()
            ? ""
            : absl::StrCat(" id=\"", EscapeHtml(heading.id), "\""),
        ">", Inline(heading.text), "</h", heading.level, ">\n");
  }
  std::string operator()(const Paragraph& paragraph) const {
    return absl::StrCat("<p>", Inline(paragraph.text), "</p>\n");
  }
  std::string operator()(const List& list) const {
    std::string html = "<ul>\n";
    for (const Text& item : list.items) {
      absl::StrAppend(&html, "<li>", Inline(item), "</li>\n");
    }
    return html + "</ul>\n";
  }
  std::string operator()(const Table& table) const {
    std::string html = absl::StrCat("<div class=\"table\"><table",
                                    table.sortable ? " class=\"sortable\"" : "",
                                    ">\n<thead><tr>");
    for (const Table::Column& column : table.columns) {
      absl::StrAppend(&html, column.number ? "<th class=\"number\">" : "<th>",
                      Inline(column.heading), "</th>");
    }
    html += "</tr></thead>\n<tbody>\n";
    for (const std::vector<Text>& row : table.rows) {
      html += "<tr>";
      for (size_t i = 0; i < row.size(); ++i) {
        absl::StrAppend(&html, "<td", CellClass(table, i, row[i]), ">",
                        Inline(row[i]), "</td>");
      }
      html += "</tr>\n";
    }
    return html + "</tbody>\n</table></div>\n";
  }
  std::string operator()(const Figure& figure) const {
    const auto drawing = drawings.find(figure.chart.name);
    std::string html = "<figure>\n";
    if (drawing == drawings.end()) {
      const std::string file =
          absl::StrCat(kChartsFolder, "/", figure.chart.name);
      absl::StrAppend(&html, "<p>Chart, not drawn yet: data <code>",
                      EscapeHtml(file), ".dat</code>, script <code>",
                      EscapeHtml(file), ".gp</code>.</p>\n");
    } else {
      absl::StrAppend(&html, "<img alt=\"", EscapeHtml(figure.description),
                      "\" src=\"data:image/svg+xml;base64,",
                      absl::Base64Escape(drawing->second), "\">\n");
    }
    return absl::StrCat(html, "<figcaption>", Inline(figure.caption),
                        "</figcaption>\n</figure>\n");
  }
  std::string operator()(const Verbatim& verbatim) const {
    return absl::StrCat(
        "<pre>", EscapeHtml(absl::StrJoin(verbatim.lines, "\n")), "</pre>\n");
  }
};

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  std::string escaped;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string EscapeUrl(absl::string_view target) {
  std::string url;
  for (const char c : target) {
    if (absl::ascii_isalnum(c) || absl::StrContains("-_.~/#", c)) {
      url += c;
    } else {
      absl::StrAppendFormat(&url, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return url;
}

std::string WriteHtml(const Document& document, const Drawings& drawings) {
  const std::string title = EscapeHtml(document.title);
  const bool sortable = absl::c_any_of(document.blocks, [](const Block& block) {
    const Table* table = std::get_if<Table>(&block);
    return table != nullptr && table->sortable;
  });
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>",
      title, "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>", kStyle,
      sortable ? kSortStyle : "", "</style>\n</head>\n<body>\n<h1>", title,
      "</h1>\n");
  for (const Block& block : document.blocks) {
    html += std::visit(Writer{drawings}, block);
  }
  if (sortable) absl::StrAppend(&html, "<script>", kSortScript, "</script>\n");
  return html + "</body>\n</html>\n";
}

}  // namespace convlab
