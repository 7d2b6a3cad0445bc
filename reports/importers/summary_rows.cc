#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/status/status.h"
#include "reports/importers/shares.h"
#include "reports/importers/summary.h"

namespace convlab {
namespace {

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
                     absl::StrCat(InQuotes(cell->text), " is less than 0"));
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
          absl::StrCat("expected a number, found ", InQuotes(cell->text)));
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
          absl::StrCat(InQuotes(cell.text),
                       unit.empty() ? " has no unit"
                                    : absl::StrCat(" is in ", InQuotes(unit)),
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
      return ErrorAt(content_, row_.at(column).offset,
                     absl::StrCat(InQuotes(row_.at(column).text),
                                  " is too large a number"));
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
                     absl::StrCat(InQuotes(row.at(Column::kShare).text),
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
                   absl::StrCat(InQuotes(row.at(Column::kCalls).text),
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
          absl::StrCat(InQuotes(row.at(Column::kTotal).text), " is not ",
                       *entry.calls, " times the average ",
                       InQuotes(row.at(Column::kAverage).text)));
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
                   InQuotes(entry->name)));
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

void AddMissing(absl::string_view reason, Profile& profile) {
  for (ProfileSection* section :
       {&profile.gpu_activities, &profile.api_calls}) {
    absl::StrAppend(&section->missing, section->missing.empty() ? "" : "; ",
                    reason);
  }
}

void TellIfCut(absl::string_view content,
               const std::vector<SummaryTable>& tables, Profile& profile) {
  const bool open_name = !tables.empty() && tables.back().open_name;
  if (absl::EndsWith(content, "\n") && !open_name) return;
  AddMissing(absl::StrCat("the file's last ", open_name ? "name" : "line",
                          " has no end, so that more may be missing"),
             profile);
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
            "the sums of ", InQuotes(into.name), " are too large numbers"));
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
