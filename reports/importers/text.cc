#include "reports/importers/text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/status/status.h"

namespace convlab {
namespace {

// Continuation bytes of UTF-8.
bool IsContinuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace

absl::Status ErrorAt(absl::string_view content, size_t offset,
                     absl::string_view message) {
  const absl::string_view before = content.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  // npos + 1 is 0: the first line begins at the beginning.
  const absl::string_view in_line = before.substr(before.rfind('\n') + 1);
  const auto column =
      1 + in_line.size() -
      std::count_if(in_line.begin(), in_line.end(), IsContinuation);
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line, ", column ", column, ": ", message));
}

std::string InQuotes(absl::string_view text) {
  constexpr size_t kMost = 60;
  if (text.size() <= kMost) return absl::StrCat("'", OneLine(text), "'");
  size_t cut = kMost;
  while (cut > 0 && IsContinuation(text[cut])) --cut;
  return absl::StrCat("'", OneLine(text.substr(0, cut)), "…'");
}

Line LineAt(absl::string_view content, size_t offset) {
  absl::string_view text =
      content.substr(offset, content.find('\n', offset) - offset);
  absl::ConsumeSuffix(&text, "\r");
  return {text, offset};
}

size_t NextLine(absl::string_view content, size_t offset) {
  const size_t end = content.find('\n', offset);
  return end == absl::string_view::npos ? content.size() : end + 1;
}

std::vector<Cell> SplitAtBlanks(const Line& line) {
  std::vector<Cell> pieces;
  size_t at = 0;
  while (at < line.text.size()) {
    if (absl::ascii_isspace(line.text[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < line.text.size() && !absl::ascii_isspace(line.text[at])) ++at;
    pieces.push_back({std::string(line.text.substr(begin, at - begin)),
                      line.offset + begin});
  }
  return pieces;
}

absl::StatusOr<std::vector<Cell>> ReadCsvRecord(absl::string_view content,
                                                size_t& offset) {
  std::vector<Cell> fields;
  size_t at = offset;
  for (;;) {
    Cell field;
    field.offset = at;
    if (at < content.size() && content[at] == '"') {
      for (++at;; ++at) {
        if (at >= content.size()) {
          return ErrorAt(content, field.offset,
                         "the file ends inside this quoted field");
        }
        if (content[at] == '"') {
          if (at + 1 >= content.size() || content[at + 1] != '"') break;
          ++at;
        }
        field.text += content[at];
      }
      ++at;
    } else {
      const size_t begin = at;
      while (at < content.size() && content[at] != ',' && content[at] != '\n') {
        ++at;
      }
      absl::string_view text = content.substr(begin, at - begin);
      if (at >= content.size() || content[at] == '\n') {
        absl::ConsumeSuffix(&text, "\r");
      }
      field.text = std::string(text);
    }
    fields.push_back(std::move(field));
    if (at < content.size() && content[at] == '\r' &&
        (at + 1 == content.size() || content[at + 1] == '\n')) {
      ++at;
    }
    if (at >= content.size() || content[at] == '\n') break;
    if (content[at] != ',') {
      return ErrorAt(content, at,
                     "expected a comma or the line's end after the quote");
    }
    ++at;
  }
  offset = std::min(at + 1, content.size());
  return fields;
}

std::optional<std::vector<Cell>> ReadCsvLine(const Line& line) {
  size_t end = 0;
  auto record = ReadCsvRecord(line.text, end);
  if (!record.ok()) return std::nullopt;
  for (Cell& cell : *record) cell.offset += line.offset;
  return *std::move(record);
}

std::string CsvField(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) {
    return std::string(text);
  }
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace convlab
