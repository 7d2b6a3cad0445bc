// Single lines of a summary (summary.h): their kinds, headings and cells.
#ifndef REPORTS_IMPORTERS_SUMMARY_LINES_H_
#define REPORTS_IMPORTERS_SUMMARY_LINES_H_

#include <cstddef>
#include <vector>

#include "absl/strings/string_view.h"
#include "reports/importers/summary.h"
#include "reports/importers/text.h"

namespace convlab {

// The format of a table.
enum class Form { kText, kBox, kCsv };

// The cells of "| a | b |"; the last of `most` cells is not split.
std::vector<Cell> SplitBox(const Line& line, size_t most);

// Nothing but blanks.
bool IsBlank(absl::string_view line);

// A line of a box, "| a | b |".
bool IsBox(absl::string_view line);

// A line that separates a header from its rows, or a box from the text.
bool IsRule(absl::string_view line);

// Returns a header if `line` is one; a CSV record may extend to `next`.
std::vector<ColumnHeading> ParseHeader(absl::string_view content,
                                       const Line& line, Form& form,
                                       size_t& next);

// Whether a piece of text is a number, with or without a unit that these tables
// have.
bool IsQuantity(const Cell& piece);

// Nothing but digits.
bool IsInteger(const Cell& piece);

// A number with the unit %.
bool IsPercentage(const Cell& piece);

// The cells of a row, whose form is recognized.
std::vector<Cell> Pieces(const Line& line);

// The type in front of a row of nvprof's: "GPU activities" of
// "  GPU activities:  35.95%"; a size of 0 if there is none.
absl::string_view TypePrefix(absl::string_view line);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_SUMMARY_LINES_H_
