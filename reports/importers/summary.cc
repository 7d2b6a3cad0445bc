#include "reports/importers/summary.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "reports/importers/shares.h"
#include "reports/importers/summary_lines.h"

namespace convlab {
namespace {

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
      const auto count =
          std::count_if(table_.header.begin(), table_.header.end(),
                        [&](const ColumnHeading& heading) {
                          return heading.column == column;
                        });
      if (count == 1) return absl::OkStatus();
      return ErrorAt(content_, table_.offset,
                     absl::StrCat("this header has ", count, " columns for '",
                                  title, "', expected 1"));
    };
    RETURN_IF_ERROR(check(Column::kName, "Name"));
    RETURN_IF_ERROR(check(Column::kTotal, "Time"));
    for (const ColumnHeading& heading : table_.header) {
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
    const std::vector<Cell> pieces = Pieces(line);
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
    for (const ColumnHeading& heading : table_.header) {
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
      if (IsBlank(line.text)) {
        const Line text = NextText(next);
        if (!LooksLikeRow(text)) break;
        next = text.offset;
        continue;
      }
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
    RETURN_IF_ERROR(AppendName(between, /*all=*/false));
    if (!table_.rows.empty()) {
      // nsys shortens long names.
      const absl::string_view name = table_.rows.back()[Column::kName].text;
      table_.open_name = IsIncomplete(name) && !absl::EndsWith(name, "…") &&
                         !absl::EndsWith(name, "...");
    }
    return absl::OkStatus();
  }

  absl::Status AppendName(const std::vector<Line>& lines, bool all) {
    // A bracket that nothing closes must not make a name of the whole file.
    constexpr size_t kLongestName = 1 << 14;
    if (table_.rows.empty()) return absl::OkStatus();
    Cell& cell = table_.rows.back()[Column::kName];
    std::string name = cell.text;
    for (const Line& line : lines) {
      if (!all && (name.size() > kLongestName || !IsIncomplete(name))) break;
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

}  // namespace

const ColumnHeading* SummaryTable::Find(Column column) const {
  for (const ColumnHeading& heading : header) {
    if (heading.column == column) return &heading;
  }
  return nullptr;
}

absl::StatusOr<std::vector<SummaryTable>> ReadSummaryTables(
    absl::string_view content) {
  return TableReader(content).Read();
}

}  // namespace convlab
