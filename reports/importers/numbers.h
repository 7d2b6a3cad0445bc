// Numbers as profilers print them: with a decimal point or a decimal comma,
// with thousands separated by commas, points, blanks or apostrophes, and with
// units.
//
// A file's numbers show which of the two locales it was written in: 65.77 and
// 27,595,520 have a decimal point, 65,77 and 27.595.520 a decimal comma.
// 117.344 alone is ambiguous. So a NumberReader first observes all numbers of a
// file and reads them afterwards:
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
  // `content` is the file with the numbers, for messages; it must outlive the
  // reader.
  explicit NumberReader(absl::string_view content) : content_(content) {}

  // Notes the locale that the number shows, if any. The error says where the
  // text is not a number, or where two numbers have different locales.
  absl::Status Observe(const Cell& number);

  // Returns the number's value. The error says where a number is ambiguous and
  // no other number of the file decides.
  absl::StatusOr<double> Read(const Cell& number) const;

  // The value of one unit in the last digit of a number that Read accepts:
  // 0.001 for "59.841".
  double LastDigit(const Cell& number) const;

 private:
  absl::string_view content_;
  std::optional<bool> decimal_comma_;
  Cell witness_;  // the number that showed the locale
};

// Splits "16.772ms" into "16.772" and "ms"; the unit is the text after the
// number, without surrounding blanks. The number is empty if the text does not
// begin with a digit or a sign.
std::pair<Cell, absl::string_view> SplitUnit(const Cell& quantity);

// The nanoseconds in `unit` ("ns", "usecond", "µs", "s"); nothing if it is not
// a unit of time.
std::optional<double> NanosecondsPer(absl::string_view unit);

// Whether the text says that the tool has no value: "", "n/a", "nan", "inf",
// also with a sign or after "(!)".
bool IsAbsent(absl::string_view text);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_NUMBERS_H_
