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

struct ColumnHeading {
  Column column = Column::kOther;
  std::string title;  // as in the file, without its unit
  std::string unit;   // "ns" of "Avg (ns)"; empty if none is given
};

using SummaryRow = std::map<Column, Cell>;

struct SummaryTable {
  std::vector<ColumnHeading> header;
  size_t offset = 0;  // of the header
  absl::string_view
      preamble;  // the text between the previous table and this one
  std::vector<SummaryRow> rows;
  bool open_name = false;  // of the last row: it ends within a bracket

  // The heading of a column; nullptr if the table lacks it.
  const ColumnHeading* Find(Column column) const;
};

// The tables of `content` in order. Errors say where a table is damaged: a row
// that ends too early, a column that is missing, a table without rows.
absl::StatusOr<std::vector<SummaryTable>> ReadSummaryTables(
    absl::string_view content);

// The header of the first table, which distinguishes tools; empty if there is
// none.
std::vector<ColumnHeading> FirstSummaryHeader(absl::string_view content);
bool IsNsysHeader(const std::vector<ColumnHeading>& header);

// Reads the numbers of a row. Units are in the cell, or else in the heading, or
// are `default_unit`; an error says where a unit is missing.
absl::Status ObserveRow(const SummaryRow& row, NumberReader& numbers);
absl::StatusOr<ProfileEntry> ReadRow(absl::string_view content,
                                     const SummaryTable& table,
                                     const SummaryRow& row,
                                     absl::string_view default_unit,
                                     const NumberReader& numbers);

// Checks that the printed shares of a table's rows fit their times; an error
// names the row that does not.
absl::Status CheckShares(absl::string_view content, const SummaryTable& table,
                         const std::vector<ProfileEntry>& entries);

// Returns one name for each kind of copy in all versions of tools: "[CUDA
// memcpy HtoD]" for "[CUDA memcpy Host-to-Device]". Other names are returned
// unchanged.
std::string ActivityName(absl::string_view name);

// Whether `name` is one of CUDA's API functions, for lists without any other
// sign.
bool IsApiName(absl::string_view name);

// Says of both lists why they may lack something.
void AddMissing(absl::string_view reason, Profile& profile);
// Does so if the last line of the file has no end, or the last name.
void TellIfCut(absl::string_view content,
               const std::vector<SummaryTable>& tables, Profile& profile);

// Merges entries with the same name, at the place of the first. Returns an
// error if their sum exceeds 2^53, beyond which doubles are not exact.
absl::Status MergeEntries(std::vector<ProfileEntry>& entries);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_SUMMARY_H_
