#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"
#include "reports/document/page_style.h"
#include "reports/document/writers.h"
#include "reports/drawing/canvas.h"

namespace convlab {
namespace {

// On paper, links to files beside the document lead nowhere and are left out.
std::string Inline(const Text& text, bool on_paper) {
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
        if (on_paper && !absl::StartsWith(span.target, "#")) {
          absl::StrAppend(&line, "<code>", escaped, "</code>");
          break;
        }
        absl::StrAppend(&line, "<a href=\"", EscapeHtml(EscapeUrl(span.target)),
                        "\">", escaped, "</a>");
        break;
    }
  }
  return line;
}

// Tables with more columns are set smaller on paper.
constexpr size_t kManyColumns = 9;

// A cell is a number, a name, or text that may be broken into lines.
std::string CellClass(const Table& table, size_t column, const Text& cell) {
  size_t length = 0;
  for (const Span& span : cell.spans()) length += span.text.size();
  const size_t most = table.columns.size() > kManyColumns ? 20 : 30;
  if (length > most) return " class=\"words\"";
  return table.columns[column].number ? " class=\"number\"" : "";
}

// " class=..." of those that apply; empty if none does.
std::string ClassOf(std::initializer_list<std::pair<const char*, bool>> some) {
  std::vector<const char*> names;
  for (const auto& [name, applies] : some) {
    if (applies) names.push_back(name);
  }
  if (names.empty()) return "";
  return absl::StrCat(" class=\"", absl::StrJoin(names, " "), "\"");
}

// Marks what a program wrote.
constexpr char kBy[] = "<span class=\"by\">generated</span>";

struct Writer {
  const std::vector<Block>& blocks;
  bool on_paper = false;

  std::string operator()(const Heading& heading) const {
    const std::string tag = absl::StrCat("h", heading.level);
    const std::string id = EscapeHtml(heading.id);
    return absl::StrCat(
        "<", tag, id.empty() ? "" : absl::StrCat(" id=\"", id, "\""), ">",
        Inline(heading.text),
        id.empty() || !HasContents()
            ? ""
            : "<a class=\"up\" href=\"#contents\" aria-label=\"to the "
              "contents\">↑</a>",
        "</", tag, ">\n");
  }
  std::string operator()(const Contents&) const {
    std::string html =
        "<nav id=\"contents\" aria-label=\"Contents\"><ul "
        "class=\"contents\">\n";
    for (const Block& block : blocks) {
      const Heading* heading = std::get_if<Heading>(&block);
      if (heading == nullptr || heading->id.empty()) continue;
      absl::StrAppend(&html, heading->level > 2 ? "<li class=\"sub\">" : "<li>",
                      "<a href=\"#", EscapeHtml(heading->id), "\">",
                      Inline(heading->text), "</a></li>\n");
    }
    return html + "</ul></nav>\n";
  }
  std::string operator()(const Paragraph& paragraph) const {
    const std::string text = Inline(paragraph.text);
    if (!paragraph.is_generated) return absl::StrCat("<p>", text, "</p>\n");
    return absl::StrCat("<p class=\"generated\">", kBy, text, "</p>\n");
  }
  std::string operator()(const List& list) const {
    std::string html =
        list.is_generated ? "<ul class=\"generated\">\n" : "<ul>\n";
    // The mark in the first item, so that they stay together on paper.
    const char* by = list.is_generated ? kBy : "";
    for (const Text& item : list.items) {
      absl::StrAppend(&html, "<li>", std::exchange(by, ""), Inline(item),
                      "</li>\n");
    }
    return html + "</ul>\n";
  }
  std::string operator()(const Table& table) const {
    // The frame scrolls, so that keys have to reach it.
    std::string html = absl::StrCat(
        "<div class=\"table\" tabindex=\"0\" role=\"group\" "
        "aria-label=\"table\"><table",
        ClassOf({{"sortable", table.sortable},
                 {"dense", table.columns.size() > kManyColumns}}),
        ">\n");
    const bool has_head =
        absl::c_any_of(table.columns, [](const Table::Column& column) {
          return !column.heading.empty() &&
                 !column.heading.spans()[0].text.empty();
        });
    if (has_head) html += "<thead><tr>";
    for (const Table::Column& column : table.columns) {
      if (!has_head) break;
      absl::StrAppend(&html, column.number ? "<th class=\"number\">" : "<th>",
                      Inline(column.heading), "</th>");
    }
    if (has_head) html += "</tr></thead>\n";
    html += "<tbody>\n";
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
    const Chart& chart = figure.chart;
    std::string html = "<figure>\n";
    if (chart.narrow.empty()) {
      html += chart.wide;
    } else {
      absl::StrAppend(&html, "<div class=\"wide\">", chart.wide,
                      "</div>\n<div class=\"narrow\">", chart.narrow,
                      "</div>\n");
    }
    return absl::StrCat(html, "<figcaption>", Inline(figure.caption),
                        "</figcaption>\n</figure>\n");
  }
  std::string operator()(const Verbatim& verbatim) const {
    return absl::StrCat("<pre tabindex=\"0\">",
                        EscapeHtml(absl::StrJoin(verbatim.lines, "\n")),
                        "</pre>\n");
  }

 private:
  std::string Inline(const Text& text) const {
    return convlab::Inline(text, on_paper);
  }
  bool HasContents() const {
    return absl::c_any_of(blocks, [](const Block& block) {
      return std::holds_alternative<Contents>(block);
    });
  }
};

std::string Page(const Document& document, const std::string& style,
                 const std::string& end) {
  const std::string title = EscapeHtml(document.title);
  const bool sortable = absl::c_any_of(document.blocks, [](const Block& block) {
    const Table* table = std::get_if<Table>(&block);
    return table != nullptr && table->sortable;
  });
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>",
      title, "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>", style,
      "</style>\n</head>\n<body>\n<main>\n<h1>", title, "</h1>\n");
  for (const Block& block : document.blocks) {
    html += std::visit(Writer{document.blocks, !end.empty()}, block);
  }
  absl::StrAppend(&html, end, "</main>\n");
  if (sortable) absl::StrAppend(&html, "<script>", SortScript(), "</script>\n");
  return html + "</body>\n</html>\n";
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  return EscapeMarkup(Printable(text));
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

std::string WriteHtml(const Document& document, absl::string_view more_style) {
  return Page(document, absl::StrCat(PageStyle(), more_style), /*end=*/"");
}

std::string WritePrintHtml(const Document& document, double scale) {
  return Page(document, PageStyle(scale),
              absl::StrCat("<p class=\"end\"><a id=\"", kEndId, "\" href=\"#",
                           kEndId, "\">&#8203;</a></p>\n"));
}

std::map<std::string, std::string> ChartFiles(const Document& document) {
  std::map<std::string, std::string> files;
  for (const Block& block : document.blocks) {
    const Figure* figure = std::get_if<Figure>(&block);
    if (figure == nullptr) continue;
    files[figure->chart.name + ".svg"] =
        drawing::StandaloneFile(figure->chart.wide);
  }
  return files;
}

}  // namespace convlab
