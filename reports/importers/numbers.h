// Numbers as profilers print them: with a decimal point or a decimal comma,
// with thousands separated by commas, points, blanks or apostrophes, and with
// units.
//
// Which of the two locales a file was written in shows in its numbers: 65.77
// and 27,595,520 have a decimal point, 65,77 and 27.595.520 a decimal comma.
// 117.344 alone shows nothing. So a file's numbers are all shown to a
// NumberReader first and read afterwards:
//
//   NumberReader reader(content);
//   for (const Cell& cell : cells) RETURN_IF_ERROR(reader.Observe(cell));
//   ASSIGN_OR_RETURN(const double value, reader.Read(cells[0]));
#ifndef REPORTS_IMPORTERS_NUMBERS_H_
#define REPORTS_IMPORTERS_NUMBERS_H_

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "reports/importers/text.h"

namespace convlab {

class NumberReader {
 public:
  // `content` is the file that the numbers stand in, for messages; it outlives
  // the reader.
  explicit NumberReader(absl::string_view content) : content_(content) {}

  // Takes note of the locale that the number shows, if it shows one. The error
  // says where there is no number, or two numbers of different locales.
  absl::Status Observe(const Cell& number);

  // The number's value. The error says where a number could be two, and the
  // file shows nowhere which.
  absl::StatusOr<double> Read(const Cell& number) const;

  // What one in the last digit of a number that Read takes is worth: 0.001 of
  // "59.841".
  double LastDigit(const Cell& number) const;

 private:
  absl::string_view content_;
  std::optional<bool> decimal_comma_;
  Cell witness_;  // the number that showed it
};

// "16.772ms" as "16.772" and "ms"; the unit is what follows the number, without
// blanks round it. An empty number: the text does not begin with a digit or a
// sign.
std::pair<Cell, absl::string_view> SplitUnit(const Cell& quantity);

// How many nanoseconds one of `unit` is ("ns", "usecond", "µs", "s"); nothing
// for what is no unit of time.
std::optional<double> NanosecondsPer(absl::string_view unit);

// Whether a tool wrote that it has no value: "", "n/a", "nan", "inf", also with
// a sign or after "(!)".
bool IsAbsent(absl::string_view text);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_NUMBERS_H_
