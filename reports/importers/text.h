// Text that a profiler wrote: its lines, its CSV records, and errors that say
// where in it something is wrong.
#ifndef REPORTS_IMPORTERS_TEXT_H_
#define REPORTS_IMPORTERS_TEXT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

// A piece of a text and where it begins, in bytes from the text's beginning.
struct Cell {
  std::string text;
  size_t offset = 0;
};

// InvalidArgument: "line 3, column 17: `message`". Lines and columns count from
// 1, columns in characters of UTF-8.
absl::Status ErrorAt(absl::string_view content, size_t offset,
                     absl::string_view message);

// Quotes `text` for a message, on one line, truncated if it is long.
std::string InQuotes(absl::string_view text);

// A line without its end, LF or CRLF.
struct Line {
  absl::string_view text;
  size_t offset = 0;
};
// The line that begins at `offset`.
Line LineAt(absl::string_view content, size_t offset);
// The beginning of the line after the one at `offset`; content.size() if there
// is none.
size_t NextLine(absl::string_view content, size_t offset);

// The pieces between blanks, each with its offset.
std::vector<Cell> SplitAtBlanks(const Line& line);

// Reads the CSV record (RFC 4180, commas) that begins at `offset`, and moves
// `offset` past it. A quoted field may span lines. The error says where a quote
// is not closed, or what follows a closing quote.
absl::StatusOr<std::vector<Cell>> ReadCsvRecord(absl::string_view content,
                                                size_t& offset);

// The same of a record that ends with its line, as headers do: to try whether a
// line is one may not take as long as the file is.
std::optional<std::vector<Cell>> ReadCsvLine(const Line& line);

// Formats `text` as a CSV field.
std::string CsvField(absl::string_view text);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_TEXT_H_
