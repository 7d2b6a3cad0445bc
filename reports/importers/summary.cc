#include "reports/importers/summary.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status/status.h"
#include "reports/importers/shares.h"

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
std::optional<Heading> ConsumeHeading(absl::string_view& text) {
  for (const Title& title : kTitles) {
    absl::string_view rest = text;
    if (!ConsumeWords(rest, title.words)) continue;
    if (!rest.empty() && absl::ascii_isalnum(rest[0])) continue;
    Heading heading{title.column, std::string(title.words), ""};
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

bool Has(const std::vector<Heading>& header, Column column) {
  return std::any_of(header.begin(), header.end(), [&](const Heading& heading) {
    return heading.column == column;
  });
}

// A property of these tables only: a share in percent beside other known
// columns.
bool IsHeader(const std::vector<Heading>& header) {
  const auto known = std::count_if(
      header.begin(), header.end(),
      [](const Heading& heading) { return heading.column != Column::kOther; });
  return Has(header, Column::kShare) && known >= 3;
}

// A header of text: only known titles.
std::vector<Heading> ParseTextHeader(absl::string_view line) {
  std::vector<Heading> header;
  for (SkipBlanks(line); !line.empty(); SkipBlanks(line)) {
    const auto heading = ConsumeHeading(line);
    if (!heading) return {};
    header.push_back(*heading);
  }
  return IsHeader(header) ? header : std::vector<Heading>();
}

// A header in separate cells, which may have titles of other columns too.
std::vector<Heading> ParseCellHeader(const std::vector<Cell>& cells) {
  std::vector<Heading> header;
  for (const Cell& cell : cells) {
    absl::string_view text = absl::StripAsciiWhitespace(cell.text);
    const auto heading = ConsumeHeading(text);
    header.push_back(heading && text.empty()
                         ? *heading
                         : Heading{Column::kOther, cell.text, ""});
  }
  return IsHeader(header) ? header : std::vector<Heading>();
}

// The cells of "| a | b |"; the last of `most` cells is not split.
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

// A line that separates a header from its rows, or a box from the text.
bool IsRule(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  return !line.empty() &&
         line.find_first_not_of("-+ ") == absl::string_view::npos;
}

enum class Form { kText, kBox, kCsv };

// Returns a header if `line` is one; a CSV record may extend to `next`.
std::vector<Heading> ParseHeader(absl::string_view content, const Line& line,
                                 Form& form, size_t& next) {
  next = NextLine(content, line.offset);
  if (!absl::StrContains(line.text, '%')) return {};
  if (IsBox(line.text)) {
    form = Form::kBox;
    return ParseCellHeader(SplitBox(line, absl::string_view::npos));
  }
  if (absl::StrContains(line.text, ',')) {
    form = Form::kCsv;
    size_t end = line.offset;
    const auto record = ReadCsvRecord(content, end);
    if (!record.ok()) return {};
    next = end;
    return ParseCellHeader(*record);
  }
  form = Form::kText;
  return ParseTextHeader(line.text);
}

// Whether a piece of text is a number, with or without a unit that these tables
// have.
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

// The cells of a row, whose form is recognized.
std::vector<Cell> Pieces(absl::string_view content, const Line& line) {
  if (IsBox(line.text)) return SplitBox(line, absl::string_view::npos);
  std::vector<Cell> pieces = SplitAtBlanks(line);
  if (pieces.empty() || IsQuantity(pieces[0])) return pieces;
  size_t end = line.offset;
  auto record = ReadCsvRecord(content, end);
  return record.ok() && record->size() > 1 ? *std::move(record) : pieces;
}

// The type in front of a row of nvprof's: "GPU activities" of
// "  GPU activities:  35.95%"; a size of 0 if there is none.
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

// Reads the tables of one text.
class TableReader {
 public:
  explicit TableReader(absl::string_view content) : content_(content) {}

  absl::StatusOr<std::vector<SummaryTable>> Read() {
    std::vector<SummaryTable> tables;
    size_t behind = 0;  // the last table
    const bool is_nsys = IsNsysHeader(FirstSummaryHeader(content_));
    for (size_t at = 0; at < content_.size();) {
      const Line line = LineAt(content_, at);
      size_t next;
      table_ = {};
      table_.header = ParseHeader(content_, line, form_, next);
      if (table_.header.empty()) {
        // The error for a row of a table whose header is missing.
        if (LooksLikeTimedRow(line)) {
          return ErrorAt(content_, at, "a row that belongs to no table");
        }
        if (is_nsys) RETURN_IF_ERROR(CheckOtherLine(line));
        at = next;
        continue;
      }
      above_ = {};
      in_other_table_ = false;
      table_.offset = at;
      table_.preamble = content_.substr(behind, at - behind);
      RETURN_IF_ERROR(CheckHeader());
      at = next;
      if (form_ == Form::kCsv) {
        RETURN_IF_ERROR(ReadCsvRows(at));
      } else {
        RETURN_IF_ERROR(ReadTextRows(at));
      }
      if (table_.rows.empty()) {
        return ErrorAt(content_, table_.offset,
                       "no row follows this header: the file is cut short");
      }
      tables.push_back(std::move(table_));
      behind = at;
    }
    return tables;
  }

 private:
  absl::Status CheckHeader() const {
    const auto check = [&](Column column, absl::string_view title) {
      const auto count = std::count_if(
          table_.header.begin(), table_.header.end(),
          [&](const Heading& heading) { return heading.column == column; });
      if (count == 1) return absl::OkStatus();
      return ErrorAt(content_, table_.offset,
                     absl::StrCat("this header has ", count, " columns for '",
                                  title, "', expected 1"));
    };
    RETURN_IF_ERROR(check(Column::kName, "Name"));
    RETURN_IF_ERROR(check(Column::kTotal, "Time"));
    for (const Heading& heading : table_.header) {
      if (heading.column == Column::kOther) continue;
      RETURN_IF_ERROR(check(heading.column, heading.title));
    }
    if (form_ == Form::kText && table_.header.back().column != Column::kName) {
      return ErrorAt(content_, table_.offset,
                     "the name is not this header's last column");
    }
    return absl::OkStatus();
  }

  // A row of nvprof's at any place: a percentage and a time.
  static bool LooksLikeTimedRow(const Line& line) {
    const size_t prefix = TypePrefix(line.text).size();
    const std::vector<Cell> pieces = SplitAtBlanks(
        {line.text.substr(prefix + (prefix > 0 ? 1 : 0)), line.offset});
    return pieces.size() >= 3 && IsPercentage(pieces[0]) &&
           IsQuantity(pieces[1]) && IsQuantity(pieces[2]) &&
           !SplitUnit(pieces[1]).second.empty();
  }

  // A rule of dashes under a header has a group for each title.
  absl::Status CheckRule(const Line& rule) const {
    const size_t groups = SplitAtBlanks(rule).size();
    if (groups == table_.header.size()) return absl::OkStatus();
    return ErrorAt(
        content_, table_.offset,
        absl::StrCat("this header has ", table_.header.size(),
                     " titles, but the rule under it is for ", groups));
  }

  // Rejects the rest of an nsys table whose header is missing: a rule without a
  // header, or a row. Tables of other quantities than times have both too, but
  // below their own header.
  absl::Status CheckOtherLine(const Line& line) {
    const Line above = std::exchange(above_, line);
    if (IsBlank(line.text)) {
      in_other_table_ = false;
      return absl::OkStatus();
    }
    const auto is_title = [](absl::string_view text) {
      return !IsBlank(text) && !absl::StrContains(text, '%') &&
             !absl::StartsWith(absl::StripAsciiWhitespace(text), "Time");
    };
    constexpr size_t kLeast = 4;  // columns of a table
    const std::vector<Cell> pieces = Pieces(content_, line);
    if (IsRule(line.text)) {
      if (pieces.size() < kLeast) return absl::OkStatus();
      if (!is_title(above.text)) {
        return ErrorAt(content_, line.offset,
                       "a rule below no header that is known");
      }
      in_other_table_ = true;
      return absl::OkStatus();
    }
    const auto first = pieces.begin();
    const auto quantities = std::count_if(
        first, first + std::min<size_t>(pieces.size(), 6), IsQuantity);
    // A header in cells needs no rule.
    if (pieces.size() >= kLeast && quantities == 0 && is_title(line.text)) {
      in_other_table_ |= IsBox(line.text) || absl::StrContains(line.text, ',');
    }
    if (!in_other_table_ && quantities >= 4 && IsQuantity(pieces.front()) &&
        !IsQuantity(pieces.back())) {
      return ErrorAt(content_, line.offset, "a row that belongs to no table");
    }
    return absl::OkStatus();
  }

  // Whether the line is a row of the current table, even a damaged one. The
  // continuation of a name does not look like a row.
  bool LooksLikeRow(const Line& line) const {
    if (!TypePrefix(line.text).empty()) return true;
    const std::vector<Cell> pieces = SplitAtBlanks(line);
    if (pieces.empty()) return false;
    if (IsPercentage(pieces[0])) return true;
    if (pieces.size() > 1 && IsQuantity(pieces[0]) && IsQuantity(pieces[1])) {
      return true;
    }
    const size_t most = std::min<size_t>(pieces.size(), 6);
    return std::count_if(pieces.begin(), pieces.begin() + most, IsQuantity) >=
           4;
  }

  // The next line from `at` on that is not blank; an empty one if none is.
  Line NextText(size_t at) const {
    while (at < content_.size() && IsBlank(LineAt(content_, at).text)) {
      at = NextLine(content_, at);
    }
    return LineAt(content_, at);
  }

  absl::StatusOr<SummaryRow> ParseTextRow(Line line) const {
    SummaryRow row;
    if (const absl::string_view type = TypePrefix(line.text); !type.empty()) {
      row[Column::kType] = {std::string(absl::StripAsciiWhitespace(type)),
                            line.offset};
      line = {line.text.substr(type.size() + 1), line.offset + type.size() + 1};
    }
    const std::vector<Cell> pieces = SplitAtBlanks(line);
    size_t at = 0;
    for (const Heading& heading : table_.header) {
      if (heading.column == Column::kType) continue;
      if (heading.column == Column::kName) break;
      if (at == pieces.size()) {
        return ErrorAt(content_, line.offset + line.text.size(),
                       absl::StrCat("the row ends before its column '",
                                    heading.title, "'"));
      }
      if (heading.column != Column::kOther) row[heading.column] = pieces[at];
      // A grid is "8 4 1", or "8,4,1".
      const bool three = absl::EndsWith(heading.title, "XYZ") &&
                         at + 2 < pieces.size() && IsInteger(pieces[at]);
      at += three ? 3 : 1;
    }
    Cell& name = row[Column::kName];
    name.offset = line.offset + line.text.size();
    if (at < pieces.size()) {
      name.offset = pieces[at].offset;
      name.text = std::string(absl::StripTrailingAsciiWhitespace(
          line.text.substr(name.offset - line.offset)));
    }
    return row;
  }

  // Whether more of a name must follow: it is empty, or only the return type,
  // or a bracket is open.
  static bool IsIncomplete(absl::string_view name) {
    if (name.empty() || name == "void") return true;
    int open = 0;
    for (size_t i = 0; i < name.size(); ++i) {
      if (absl::StrContains("(<[{", name[i])) ++open;
      const bool arrow = i > 0 && name[i] == '>' && name[i - 1] == '-';
      if (absl::StrContains(")>]}", name[i]) && !arrow) --open;
    }
    return open > 0;
  }

  absl::Status ReadBoxRow(const Line& line) {
    const std::vector<Cell> cells = SplitBox(line, table_.header.size());
    return AddCells(cells, line.offset);
  }

  absl::Status AddCells(const std::vector<Cell>& cells, size_t offset) {
    if (cells.size() != table_.header.size()) {
      return ErrorAt(
          content_, offset,
          absl::StrCat("this row has ", cells.size(),
                       " columns, its header has ", table_.header.size()));
    }
    SummaryRow row;
    for (size_t i = 0; i < cells.size(); ++i) {
      const Column column = table_.header[i].column;
      if (column != Column::kOther) row[column] = cells[i];
    }
    if (IsBlank(row[Column::kName].text)) {
      return ErrorAt(content_, offset, "this row has no name");
    }
    table_.rows.push_back(std::move(row));
    return absl::OkStatus();
  }

  // Reads from `at` to the table's end, and moves `at` there. Lines between two
  // rows belong to the first one's name, which a report may have wrapped. Lines
  // after the last row belong to its name only until the name is complete,
  // because the program's output may follow.
  absl::Status ReadTextRows(size_t& at) {
    std::vector<Line> between;
    std::string type;
    size_t next;
    for (size_t here = at; here < content_.size(); here = next) {
      const Line line = LineAt(content_, here);
      Form form;
      if (!ParseHeader(content_, line, form, next).empty()) break;
      if (absl::StartsWith(line.text, "==")) break;
      if (form_ == Form::kBox) {
        if (IsBox(line.text)) {
          RETURN_IF_ERROR(ReadBoxRow(line));
          at = next;
        } else if (!IsRule(line.text)) {
          break;
        }
        continue;
      }
      if (IsRule(line.text)) {
        if (table_.rows.empty()) {
          RETURN_IF_ERROR(CheckRule(line));
          continue;
        }
        break;  // under the header of another table
      }
      if (IsBlank(line.text) && !LooksLikeRow(NextText(next))) break;
      if (!LooksLikeRow(line)) {
        between.push_back(line);
        continue;
      }
      ASSIGN_OR_RETURN(SummaryRow row, ParseTextRow(line));
      RETURN_IF_ERROR(AppendName(between, /*all=*/true));
      between.clear();
      if (row.count(Column::kType) > 0) {
        type = row[Column::kType].text;
      } else if (!type.empty()) {
        row[Column::kType] = {type, line.offset};
      }
      table_.rows.push_back(std::move(row));
      at = next;
    }
    return AppendName(between, /*all=*/false);
  }

  absl::Status AppendName(const std::vector<Line>& lines, bool all) {
    if (table_.rows.empty()) return absl::OkStatus();
    Cell& cell = table_.rows.back()[Column::kName];
    std::string name = cell.text;
    for (const Line& line : lines) {
      if (!all && !IsIncomplete(name)) break;
      const absl::string_view more = absl::StripAsciiWhitespace(line.text);
      if (more.empty() && !all) break;
      if (!more.empty()) absl::StrAppend(&name, name.empty() ? "" : " ", more);
    }
    // Lines that never complete the name are not part of it.
    if (all || !IsIncomplete(name) || cell.text.empty()) cell.text = name;
    if (cell.text.empty()) {
      return ErrorAt(content_, cell.offset,
                     "the row ends before its column 'Name'");
    }
    return absl::OkStatus();
  }

  // nvprof's row of units follows its header, where no title has one.
  absl::StatusOr<bool> TakeUnits(const std::vector<Cell>& cells) {
    const bool are_units =
        std::all_of(cells.begin(), cells.end(), [](const Cell& cell) {
          return cell.text.empty() || cell.text == "%" ||
                 NanosecondsPer(cell.text).has_value();
        });
    if (!are_units || cells.size() != table_.header.size()) return false;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (table_.header[i].column != Column::kShare) {
        table_.header[i].unit = cells[i].text;
      }
    }
    return true;
  }

  absl::Status ReadCsvRows(size_t& at) {
    bool first = true;
    while (at < content_.size()) {
      const Line line = LineAt(content_, at);
      if (IsBlank(line.text) || absl::StartsWith(line.text, "==")) break;
      size_t next;
      Form form;
      if (!ParseHeader(content_, line, form, next).empty()) break;
      next = at;
      ASSIGN_OR_RETURN(const std::vector<Cell> cells,
                       ReadCsvRecord(content_, next));
      // The program's own output, or what nsys says of its next report.
      if (cells.size() != table_.header.size() && line.text[0] != '"' &&
          !IsQuantity(cells[0])) {
        break;
      }
      if (first) {
        ASSIGN_OR_RETURN(const bool units, TakeUnits(cells));
        first = false;
        if (units) {
          at = next;
          continue;
        }
      }
      RETURN_IF_ERROR(AddCells(cells, at));
      at = next;
    }
    return absl::OkStatus();
  }

  const absl::string_view content_;
  SummaryTable table_;
  Form form_ = Form::kText;
  // The text outside of the tables.
  Line above_;
  bool in_other_table_ = false;
};

const Cell* FindNumber(const SummaryRow& row, Column column) {
  const auto found = row.find(column);
  return found == row.end() || IsAbsent(found->second.text) ? nullptr
                                                            : &found->second;
}

constexpr Column kNumbers[] = {Column::kShare,   Column::kTotal, Column::kCalls,
                               Column::kAverage, Column::kMin,   Column::kMax};

// Reads the numbers of one row.
class RowReader {
 public:
  RowReader(absl::string_view content, const SummaryTable& table,
            const SummaryRow& row, absl::string_view default_unit,
            const NumberReader& numbers)
      : content_(content),
        table_(table),
        row_(row),
        default_unit_(default_unit),
        numbers_(numbers) {}

  // Returns a number that is not negative; nothing if the row has none.
  absl::StatusOr<std::optional<double>> Number(Column column) const {
    const Cell* const cell = FindNumber(row_, column);
    if (cell == nullptr) return std::optional<double>();
    ASSIGN_OR_RETURN(const double value, numbers_.Read(SplitUnit(*cell).first));
    if (value < 0) {
      return ErrorAt(content_, cell->offset,
                     absl::StrCat(Quoted(cell->text), " is less than 0"));
    }
    return std::optional<double>(value);
  }

  // The same for a column whose only unit is `unit`.
  absl::StatusOr<std::optional<double>> Plain(Column column,
                                              absl::string_view unit) const {
    const Cell* const cell = FindNumber(row_, column);
    if (cell == nullptr) return std::optional<double>();
    const absl::string_view found = SplitUnit(*cell).second;
    if (!found.empty() && found != unit) {
      return ErrorAt(
          content_, cell->offset,
          absl::StrCat("expected a number, found ", Quoted(cell->text)));
    }
    return Number(column);
  }

  absl::StatusOr<std::optional<double>> Nanoseconds(Column column) const {
    ASSIGN_OR_RETURN(const std::optional<double> value, Number(column));
    if (!value) return value;
    const Cell& cell = row_.at(column);
    const std::string unit = Unit(column);
    const std::optional<double> ns = NanosecondsPer(unit);
    if (!ns) {
      return ErrorAt(
          content_, cell.offset,
          absl::StrCat(Quoted(cell.text),
                       unit.empty() ? " has no unit"
                                    : absl::StrCat(" is in ", Quoted(unit)),
                       ", expected ns, us, ms or s"));
    }
    return std::optional<double>(*value * *ns);
  }

  // The largest rounding error in ns of a time that Nanoseconds accepted: half
  // of its last digit.
  double Rounding(Column column) const {
    return numbers_.LastDigit(SplitUnit(row_.at(column)).first) / 2 *
           NanosecondsPer(Unit(column)).value_or(0);
  }

  absl::StatusOr<std::optional<int64_t>> Integer(
      Column column, std::optional<double> value) const {
    if (!value) return std::optional<int64_t>();
    // A double does not distinguish larger ones.
    constexpr double kLargest = int64_t{1} << 53;
    if (*value > kLargest) {
      return ErrorAt(
          content_, row_.at(column).offset,
          absl::StrCat(Quoted(row_.at(column).text), " is too large a number"));
    }
    return std::optional<int64_t>(std::llround(*value));
  }

 private:
  // The unit in the cell, or else in the heading, or else the default.
  std::string Unit(Column column) const {
    const absl::string_view unit = SplitUnit(row_.at(column)).second;
    if (!unit.empty()) return std::string(unit);
    const std::string& heading = table_.Find(column)->unit;
    return heading.empty() ? std::string(default_unit_) : heading;
  }

  const absl::string_view content_;
  const SummaryTable& table_;
  const SummaryRow& row_;
  const absl::string_view default_unit_;
  const NumberReader& numbers_;
};

template <typename T>
void Combine(std::optional<T>& into, const std::optional<T>& other,
             T (*combine)(T, T)) {
  into = into && other ? std::optional<T>(combine(*into, *other))
                       : std::optional<T>();
}

}  // namespace

const Heading* SummaryTable::Find(Column column) const {
  for (const Heading& heading : header) {
    if (heading.column == column) return &heading;
  }
  return nullptr;
}

absl::StatusOr<std::vector<SummaryTable>> ReadSummaryTables(
    absl::string_view content) {
  return TableReader(content).Read();
}

std::vector<Heading> FirstSummaryHeader(absl::string_view content) {
  size_t next;
  for (size_t at = 0; at < content.size(); at = next) {
    Form form;
    auto header = ParseHeader(content, LineAt(content, at), form, next);
    if (!header.empty()) return header;
  }
  return {};
}

bool IsNsysHeader(const std::vector<Heading>& header) {
  return std::any_of(header.begin(), header.end(), [](const Heading& heading) {
    return heading.title == "Total Time";
  });
}

absl::Status ObserveRow(const SummaryRow& row, NumberReader& numbers) {
  for (const Column column : kNumbers) {
    const Cell* const cell = FindNumber(row, column);
    if (cell == nullptr) continue;
    const Cell number = SplitUnit(*cell).first;
    // Without a number the error quotes the whole cell.
    RETURN_IF_ERROR(numbers.Observe(number.text.empty() ? *cell : number));
  }
  return absl::OkStatus();
}

absl::StatusOr<ProfileEntry> ReadRow(absl::string_view content,
                                     const SummaryTable& table,
                                     const SummaryRow& row,
                                     absl::string_view default_unit,
                                     const NumberReader& numbers) {
  const RowReader reader(content, table, row, default_unit, numbers);
  ProfileEntry entry;
  entry.name = row.at(Column::kName).text;
  ASSIGN_OR_RETURN(const auto share, reader.Plain(Column::kShare, "%"));
  if (share) {
    if (*share > 100) {
      return ErrorAt(content, row.at(Column::kShare).offset,
                     absl::StrCat(Quoted(row.at(Column::kShare).text),
                                  " is more than 100 %"));
    }
    entry.printed_share = *share / 100;
  }
  ASSIGN_OR_RETURN(const auto total, reader.Nanoseconds(Column::kTotal));
  if (!total) {
    return ErrorAt(content, row.at(Column::kTotal).offset,
                   "this row has no total time");
  }
  ASSIGN_OR_RETURN(entry.total_ns, reader.Integer(Column::kTotal, total));
  ASSIGN_OR_RETURN(const auto calls, reader.Plain(Column::kCalls, ""));
  ASSIGN_OR_RETURN(entry.calls, reader.Integer(Column::kCalls, calls));
  if (calls && (*entry.calls == 0 || *entry.calls != *calls)) {
    return ErrorAt(content, row.at(Column::kCalls).offset,
                   absl::StrCat(Quoted(row.at(Column::kCalls).text),
                                " is not a number of calls"));
  }
  ASSIGN_OR_RETURN(entry.average_ns, reader.Nanoseconds(Column::kAverage));
  if (calls && entry.average_ns) {
    const double average = *entry.average_ns;
    // nvprof truncates averages to whole ns.
    const double rounding = *calls * (1 + reader.Rounding(Column::kAverage)) +
                            reader.Rounding(Column::kTotal);
    if (std::abs(*calls * average - *total) > rounding * (1 + 1e-9)) {
      return ErrorAt(
          content, row.at(Column::kTotal).offset,
          absl::StrCat(Quoted(row.at(Column::kTotal).text), " is not ",
                       *entry.calls, " times the average ",
                       Quoted(row.at(Column::kAverage).text)));
    }
  }
  ASSIGN_OR_RETURN(const auto min, reader.Nanoseconds(Column::kMin));
  ASSIGN_OR_RETURN(entry.min_ns, reader.Integer(Column::kMin, min));
  ASSIGN_OR_RETURN(const auto max, reader.Nanoseconds(Column::kMax));
  ASSIGN_OR_RETURN(entry.max_ns, reader.Integer(Column::kMax, max));
  return entry;
}

absl::Status CheckShares(absl::string_view content, const SummaryTable& table,
                         const std::vector<ProfileEntry>& entries) {
  const ProfileEntry* const entry = FindContradiction(entries);
  if (entry == nullptr) return absl::OkStatus();
  return ErrorAt(
      content, table.offset,
      absl::StrCat("the shares and times of this table contradict each other, "
                   "as those of ",
                   Quoted(entry->name)));
}

std::string ActivityName(absl::string_view name) {
  name = absl::StripAsciiWhitespace(name);
  if (!absl::StartsWith(name, "[CUDA ")) return std::string(name);
  const std::string unified =
      absl::StrReplaceAll(name, {{"memcpy Unified ", "memcpy "}});
  const std::string direction =
      absl::StrReplaceAll(unified, {{"Host-to-Device", "HtoD"},
                                    {"Device-to-Host", "DtoH"},
                                    {"Device-to-Device", "DtoD"},
                                    {"Host-to-Host", "HtoH"},
                                    {"Peer-to-Peer", "PtoP"},
                                    {"Host-to-Array", "HtoA"},
                                    {"Array-to-Host", "AtoH"},
                                    {"Array-to-Array", "AtoA"},
                                    {"Array-to-Device", "AtoD"},
                                    {"Device-to-Array", "DtoA"}});
  return unified == name
             ? direction
             : absl::StrReplaceAll(direction,
                                   {{"[CUDA ", "[CUDA Unified Memory "}});
}

bool IsApiName(absl::string_view name) {
  return (absl::ConsumePrefix(&name, "cuda") ||
          absl::ConsumePrefix(&name, "cu")) &&
         !name.empty() && absl::ascii_isupper(name[0]);
}

absl::Status MergeEntries(std::vector<ProfileEntry>& entries) {
  std::map<std::string, size_t> places;
  std::vector<ProfileEntry> merged;
  for (ProfileEntry& entry : entries) {
    const auto [place, is_new] = places.emplace(entry.name, merged.size());
    if (is_new) {
      merged.push_back(std::move(entry));
      continue;
    }
    ProfileEntry& into = merged[place->second];
    // Neither exceeds 2^53.
    const auto add = [](int64_t a, int64_t b) { return a + b; };
    Combine<int64_t>(into.calls, entry.calls, add);
    Combine<int64_t>(into.total_ns, entry.total_ns, add);
    Combine<int64_t>(into.bytes, entry.bytes, add);
    Combine<int64_t>(into.min_ns, entry.min_ns,
                     [](int64_t a, int64_t b) { return std::min(a, b); });
    Combine<int64_t>(into.max_ns, entry.max_ns,
                     [](int64_t a, int64_t b) { return std::max(a, b); });
    Combine<double>(into.printed_share, entry.printed_share,
                    [](double a, double b) { return std::min(a + b, 1.0); });
    for (const auto& sum : {into.calls, into.total_ns, into.bytes}) {
      if (sum.value_or(0) > int64_t{1} << 53) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the sums of ", Quoted(into.name), " are too large numbers"));
      }
    }
    into.average_ns.reset();
    if (into.calls && into.total_ns) {
      into.average_ns = static_cast<double>(*into.total_ns) / *into.calls;
    }
  }
  entries = std::move(merged);
  return absl::OkStatus();
}

}  // namespace convlab
