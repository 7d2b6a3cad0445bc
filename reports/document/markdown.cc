#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/status/status.h"
#include "reports/document/writers.h"

namespace convlab {
namespace {

// A fence of backticks that is longer or shorter than every run of them in
// `text`.
std::string Fence(absl::string_view text, size_t least) {
  size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(std::max(least, longest + 1), '`');
}

std::string CodeSpan(absl::string_view text) {
  const std::string fence = Fence(text, 1);
  // A blank keeps a backtick at the end apart from the fence; it is not shown.
  const bool apart = absl::StartsWith(text, "`") || absl::EndsWith(text, "`");
  const char* const blank = apart ? " " : "";
  return absl::StrCat(fence, blank, text, blank, fence);
}

std::string Inline(const Text& text) {
  std::string line;
  for (const Span& span : text.spans()) {
    switch (span.kind) {
      case Span::Kind::kPlain:
        absl::StrAppend(&line, EscapeMarkdown(span.text));
        break;
      case Span::Kind::kCode:
        absl::StrAppend(&line, CodeSpan(OneLine(span.text)));
        break;
      case Span::Kind::kStrong:
        absl::StrAppend(&line, "**", EscapeMarkdown(span.text), "**");
        break;
      case Span::Kind::kLink:
        absl::StrAppend(&line, "[", EscapeMarkdown(span.text), "](",
                        EscapeUrl(span.target), ")");
        break;
    }
  }
  return line;
}

// Escapes text that would begin a list, a heading or a quotation at the start
// of a line.
std::string Line(const Text& text) {
  std::string line = Inline(text);
  if (line.empty()) return line;
  const size_t digits = line.find_first_not_of("0123456789");
  if (absl::StrContains("#+-=>", line[0])) return absl::StrCat("\\", line);
  if (digits != 0 && digits != std::string::npos &&
      (line[digits] == '.' || line[digits] == ')')) {
    line.insert(digits, "\\");
  }
  return line;
}

// Code spans too: a bar ends a cell everywhere.
std::string Cell(const Text& text) {
  std::string cell;
  for (const Span& span : text.spans()) {
    std::string part = Inline(Text(span));
    if (span.kind == Span::Kind::kCode) {
      part = absl::StrReplaceAll(part, {{"|", "\\|"}});
    }
    cell += part;
  }
  return cell;
}

// Characters of UTF-8.
size_t Width(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  });
}

// Cuts the widest columns until a line has at most `width` characters.
void CutColumns(std::vector<std::vector<std::string>>& lines,
                std::vector<size_t>& widths, size_t width) {
  constexpr size_t kLeast = 8;
  size_t total = 1;
  for (const size_t one : widths) total += one + 3;
  while (total > width) {
    const auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= kLeast) return;
    --*widest;
    --total;
  }
  for (std::vector<std::string>& cells : lines) {
    for (size_t i = 0; i < cells.size(); ++i) {
      if (Width(cells[i]) <= widths[i]) continue;
      std::string cut;
      size_t kept = 0;
      for (const char c : cells[i]) {
        kept += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
        if (kept >= widths[i]) break;
        cut += c;
      }
      cells[i] = cut + "…";
    }
  }
}

std::string TableText(const Table& table, bool padded, size_t width) {
  std::vector<std::vector<std::string>> lines(1);
  for (const Table::Column& column : table.columns) {
    lines[0].push_back(Cell(column.heading));
  }
  for (const std::vector<Text>& row : table.rows) {
    std::vector<std::string>& cells = lines.emplace_back();
    for (const Text& cell : row) cells.push_back(Cell(cell));
  }
  std::vector<size_t> widths(table.columns.size(), padded ? 3 : 0);
  if (padded) {
    for (const std::vector<std::string>& cells : lines) {
      for (size_t i = 0; i < cells.size(); ++i) {
        widths[i] = std::max(widths[i], Width(cells[i]));
      }
    }
    if (width > 0) CutColumns(lines, widths, width);
  }
  std::string text;
  for (const std::vector<std::string>& cells : lines) {
    text += "|";
    for (size_t i = 0; i < cells.size(); ++i) {
      const size_t used = Width(cells[i]);
      const std::string blanks(widths[i] > used ? widths[i] - used : 0, ' ');
      const bool right = table.columns[i].number;
      absl::StrAppend(&text, " ", right ? blanks : "", cells[i],
                      right ? "" : blanks, " |");
    }
    text += "\n";
    if (&cells != &lines.front()) continue;
    text += "|";
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string dashes(std::max<size_t>(widths[i], 3), '-');
      absl::StrAppend(&text, table.columns[i].number ? "-" : " ", dashes,
                      table.columns[i].number ? ":" : " ", "|");
    }
    text += "\n";
  }
  return text;
}

// Begins what a program wrote.
constexpr char kGenerated[] = "*Generated:* ";

struct Writer {
  const std::vector<Block>& blocks;
  bool padded = false;
  size_t width = 0;

  std::string operator()(const Heading& heading) const {
    return absl::StrCat(
        std::string(heading.level, '#'), " ",
        heading.id.empty()
            ? ""
            : absl::StrCat("<a id=\"", EscapeHtml(heading.id), "\"></a>"),
        Inline(heading.text), "\n");
  }
  std::string operator()(const Contents&) const {
    std::string text;
    for (const Block& block : blocks) {
      const Heading* heading = std::get_if<Heading>(&block);
      if (heading == nullptr || heading->id.empty()) continue;
      absl::StrAppend(&text, std::string(size_t{2} * (heading->level - 2), ' '),
                      "- [", Inline(heading->text), "](#", heading->id, ")\n");
    }
    return text;
  }
  std::string operator()(const Paragraph& paragraph) const {
    if (paragraph.is_generated) {
      return absl::StrCat(kGenerated, Inline(paragraph.text), "\n");
    }
    return Line(paragraph.text) + "\n";
  }
  std::string operator()(const List& list) const {
    std::string text =
        list.is_generated ? absl::StrCat(kGenerated, "\n\n") : "";
    for (const Text& item : list.items) {
      absl::StrAppend(&text, "- ", Line(item), "\n");
    }
    return text;
  }
  std::string operator()(const Table& table) const {
    return TableText(table, padded, width);
  }
  std::string operator()(const Figure& figure) const {
    return absl::StrCat(
        "![", EscapeMarkdown(figure.description), "](",
        EscapeUrl(absl::StrCat(kChartsFolder, "/", figure.chart.name, ".svg")),
        ")\n\n", Line(figure.caption), "\n");
  }
  std::string operator()(const Verbatim& verbatim) const {
    const std::string lines = absl::StrJoin(verbatim.lines, "\n");
    const std::string fence = Fence(lines, 3);
    return absl::StrCat(fence, "\n", lines, "\n", fence, "\n");
  }
};

}  // namespace

std::string EscapeMarkdown(absl::string_view text) {
  std::string escaped;
  for (const char c : OneLine(text)) {
    if (c == '<') {
      escaped += "&lt;";
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      if (absl::StrContains("\\`*_[]>|~$", c)) escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string WriteBlocks(const std::vector<Block>& blocks, size_t width) {
  std::string text;
  for (const Block& block : blocks) {
    absl::StrAppend(&text, text.empty() ? "" : "\n",
                    std::visit(Writer{blocks, /*padded=*/true, width}, block));
  }
  return Printable(text);
}

std::string WriteMarkdown(const Document& document) {
  std::string text = absl::StrCat("# ", EscapeMarkdown(document.title), "\n");
  for (const Block& block : document.blocks) {
    absl::StrAppend(&text, "\n", std::visit(Writer{document.blocks}, block));
  }
  return Printable(text);
}

}  // namespace convlab
