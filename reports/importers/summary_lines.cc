#include "reports/importers/summary_lines.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "reports/importers/numbers.h"

namespace convlab {
namespace {

struct Title {
  absl::string_view words;
  Column column;
};

// Every title of every version. Where one begins another, the longer is first.
constexpr Title kTitles[] = {
    {"Type", Column::kType},         {"Total Time", Column::kTotal},
    {"Time", Column::kTotal},        {"Num Calls", Column::kCalls},
    {"Calls", Column::kCalls},       {"Instances", Column::kCalls},
    {"Count", Column::kCalls},       {"Average", Column::kAverage},
    {"Avg", Column::kAverage},       {"Median", Column::kOther},
    {"Med", Column::kOther},         {"Minimum", Column::kMin},
    {"Min", Column::kMin},           {"Maximum", Column::kMax},
    {"Max", Column::kMax},           {"StdDev", Column::kOther},
    {"GridXYZ", Column::kOther},     {"BlockXYZ", Column::kOther},
    {"Style", Column::kOther},       {"Source", Column::kOther},
    {"Category", Column::kCategory}, {"Operation", Column::kName},
    {"Range", Column::kName},        {"Name", Column::kName},
};

void SkipBlanks(absl::string_view& text) {
  text = absl::StripLeadingAsciiWhitespace(text);
}

// Takes `words` from the beginning of `text`, with any blanks between them.
bool ConsumeWords(absl::string_view& text, absl::string_view words) {
  absl::string_view rest = text;
  for (const absl::string_view word : absl::StrSplit(words, ' ')) {
    SkipBlanks(rest);
    if (!absl::ConsumePrefix(&rest, word)) return false;
  }
  text = rest;
  return true;
}

// Takes a heading from the beginning of `text`: a title, and a unit in
// parentheses behind it.
std::optional<ColumnHeading> ConsumeHeading(absl::string_view& text) {
  for (const Title& title : kTitles) {
    absl::string_view rest = text;
    if (!ConsumeWords(rest, title.words)) continue;
    if (!rest.empty() && absl::ascii_isalnum(rest[0])) continue;
    ColumnHeading heading{title.column, std::string(title.words), ""};
    absl::string_view unit = rest;
    SkipBlanks(unit);
    if (absl::ConsumePrefix(&unit, "(")) {
      const size_t end = unit.find(')');
      if (end == absl::string_view::npos) continue;
      heading.unit = std::string(unit.substr(0, end));
      rest = unit.substr(end + 1);
      if (title.column == Column::kTotal && heading.unit == "%") {
        heading.column = Column::kShare;
      }
    }
    text = rest;
    return heading;
  }
  return std::nullopt;
}

bool Has(const std::vector<ColumnHeading>& header, Column column) {
  return std::any_of(
      header.begin(), header.end(),
      [&](const ColumnHeading& heading) { return heading.column == column; });
}

// A property of these tables only: a share in percent beside other known
// columns.
bool IsHeader(const std::vector<ColumnHeading>& header) {
  const auto known = std::count_if(header.begin(), header.end(),
                                   [](const ColumnHeading& heading) {
                                     return heading.column != Column::kOther;
                                   });
  return Has(header, Column::kShare) && known >= 3;
}

// A header of text: only known titles.
std::vector<ColumnHeading> ParseTextHeader(absl::string_view line) {
  std::vector<ColumnHeading> header;
  for (SkipBlanks(line); !line.empty(); SkipBlanks(line)) {
    const auto heading = ConsumeHeading(line);
    if (!heading) return {};
    header.push_back(*heading);
  }
  return IsHeader(header) ? header : std::vector<ColumnHeading>();
}

// A header in separate cells, which may have titles of other columns too.
std::vector<ColumnHeading> ParseCellHeader(const std::vector<Cell>& cells) {
  std::vector<ColumnHeading> header;
  for (const Cell& cell : cells) {
    absl::string_view text = absl::StripAsciiWhitespace(cell.text);
    const auto heading = ConsumeHeading(text);
    header.push_back(heading && text.empty()
                         ? *heading
                         : ColumnHeading{Column::kOther, cell.text, ""});
  }
  return IsHeader(header) ? header : std::vector<ColumnHeading>();
}

}  // namespace

std::vector<Cell> SplitBox(const Line& line, size_t most) {
  std::vector<Cell> cells;
  absl::string_view text = absl::StripTrailingAsciiWhitespace(line.text);
  absl::ConsumeSuffix(&text, "|");
  size_t at = text.find('|') + 1;
  for (;;) {
    size_t end = text.find('|', at);
    if (cells.size() + 1 == most) end = absl::string_view::npos;
    const absl::string_view cell = text.substr(at, end - at);
    const size_t blanks =
        cell.size() - absl::StripLeadingAsciiWhitespace(cell).size();
    cells.push_back({std::string(absl::StripAsciiWhitespace(cell)),
                     line.offset + at + blanks});
    if (end == absl::string_view::npos) return cells;
    at = end + 1;
  }
}

bool IsBlank(absl::string_view line) {
  return absl::StripAsciiWhitespace(line).empty();
}

bool IsBox(absl::string_view line) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "|");
}

bool IsRule(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  return !line.empty() &&
         line.find_first_not_of("-+ ") == absl::string_view::npos;
}

std::vector<ColumnHeading> ParseHeader(absl::string_view content,
                                       const Line& line, Form& form,
                                       size_t& next) {
  next = NextLine(content, line.offset);
  if (!absl::StrContains(line.text, '%')) return {};
  if (IsBox(line.text)) {
    form = Form::kBox;
    return ParseCellHeader(SplitBox(line, absl::string_view::npos));
  }
  if (absl::StrContains(line.text, ',')) {
    form = Form::kCsv;
    const auto record = ReadCsvLine(line);
    return record ? ParseCellHeader(*record) : std::vector<ColumnHeading>();
  }
  form = Form::kText;
  return ParseTextHeader(line.text);
}

bool IsQuantity(const Cell& piece) {
  if (piece.text == "-") return true;  // has none
  const auto [number, unit] = SplitUnit(piece);
  return !number.text.empty() &&
         (unit.empty() || unit == "%" || NanosecondsPer(unit).has_value());
}

bool IsInteger(const Cell& piece) {
  return std::all_of(piece.text.begin(), piece.text.end(), absl::ascii_isdigit);
}

bool IsPercentage(const Cell& piece) {
  const auto [number, unit] = SplitUnit(piece);
  return !number.text.empty() && unit == "%";
}

std::vector<Cell> Pieces(const Line& line) {
  if (IsBox(line.text)) return SplitBox(line, absl::string_view::npos);
  std::vector<Cell> pieces = SplitAtBlanks(line);
  if (pieces.empty() || IsQuantity(pieces[0])) return pieces;
  auto record = ReadCsvLine(line);
  return record && record->size() > 1 ? *std::move(record) : pieces;
}

absl::string_view TypePrefix(absl::string_view line) {
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos) return "";
  const absl::string_view type =
      absl::StripAsciiWhitespace(line.substr(0, colon));
  for (const absl::string_view known :
       {"GPU activities", "API calls", "OpenACC", "OpenMP"}) {
    if (absl::StartsWithIgnoreCase(type, known)) return line.substr(0, colon);
  }
  return "";
}

std::vector<ColumnHeading> FirstSummaryHeader(absl::string_view content) {
  size_t next;
  for (size_t at = 0; at < content.size(); at = next) {
    Form form;
    auto header = ParseHeader(content, LineAt(content, at), form, next);
    if (!header.empty()) return header;
  }
  return {};
}

bool IsNsysHeader(const std::vector<ColumnHeading>& header) {
  return std::any_of(header.begin(), header.end(),
                     [](const ColumnHeading& heading) {
                       return heading.title == "Total Time";
                     });
}

}  // namespace convlab
