// The summary tables that nvprof and nsys stats print: a header, then one row
// per kernel, copy or API function. Columns are known by their names. A table
// is CSV, or text with the name as its last column, or text in a box of + and
// |.
#ifndef REPORTS_IMPORTERS_SUMMARY_H_
#define REPORTS_IMPORTERS_SUMMARY_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/profile.h"
#include "reports/importers/numbers.h"
#include "reports/importers/text.h"

namespace convlab {

enum class Column {
  kType,   // nvprof's "GPU activities:", on a section's first row
  kShare,  // in percent
  kTotal,
  kCalls,
  kAverage,
  kMin,
  kMax,
  kCategory,  // of nsys' reports on kernels, copies and API calls together
  kName,
  kOther
};

struct Heading {
  Column column = Column::kOther;
  std::string title;  // as it stands in the file, without its unit
  std::string unit;   // "ns" of "Avg (ns)"; empty if none is given
};

using SummaryRow = std::map<Column, Cell>;

struct SummaryTable {
  std::vector<Heading> header;
  size_t offset = 0;           // of the header
  absl::string_view preamble;  // what stands between this table and the last
  std::vector<SummaryRow> rows;

  // The heading of a column, nullptr if the table lacks it.
  const Heading* Find(Column column) const;
};

// The tables of `content` in order. Errors say where a table is damaged: a row
// that ends too early, a column that is missing, a table without rows.
absl::StatusOr<std::vector<SummaryTable>> ReadSummaryTables(
    absl::string_view content);

// The header of the first table, empty if there is none: tells tools apart.
std::vector<Heading> FirstSummaryHeader(absl::string_view content);
bool IsNsysHeader(const std::vector<Heading>& header);

// The numbers of a row. Units stand in the cell, or else in the heading, or are
// `default_unit`; an error says where there is none.
absl::Status ObserveRow(const SummaryRow& row, NumberReader& numbers);
absl::StatusOr<ProfileEntry> ReadRow(absl::string_view content,
                                     const SummaryTable& table,
                                     const SummaryRow& row,
                                     absl::string_view default_unit,
                                     const NumberReader& numbers);

// That the printed shares of a table's rows fit their times; an error names the
// row that does not.
absl::Status CheckShares(absl::string_view content, const SummaryTable& table,
                         const std::vector<ProfileEntry>& entries);

// One name for each kind of copy, whatever a tool's version calls it:
// "[CUDA memcpy HtoD]" for "[CUDA memcpy Host-to-Device]". Other names stay.
std::string ActivityName(absl::string_view name);

// Whether a list of this name is one of CUDA's API functions, for lists that
// nothing else tells about.
bool IsApiName(absl::string_view name);

// Makes one entry of those with the same name, at the place of the first. An
// error: their sum is more than 2^53, which a double does not hold exactly.
absl::Status MergeEntries(std::vector<ProfileEntry>& entries);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_SUMMARY_H_
