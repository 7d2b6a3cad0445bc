#include "reports/importers/nsys_sqlite.h"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/record/activities.h"
#include "common/record/run_record.h"
#include "common/status/status.h"
#include "reports/importers/sqlite_reader.h"
#include "reports/importers/summary.h"
#include "reports/importers/text.h"

namespace convlab {
namespace {

// Kinds of copies by CUPTI's numbers (CUpti_ActivityMemcpyKind) and nsys's own
// for unified memory.
std::string CopyName(int64_t kind) {
  static constexpr const char* kKinds[] = {
      "unknown", "HtoD",         "DtoH",         "HtoA",        "AtoH",
      "AtoA",    "AtoD",         "DtoA",         "DtoD",        "HtoH",
      "PtoP",    "Unified HtoD", "Unified DtoH", "Unified DtoD"};
  constexpr int64_t kCount = sizeof(kKinds) / sizeof(kKinds[0]);
  return ActivityName(kind >= 0 && kind < kCount
                          ? absl::StrCat("[CUDA memcpy ", kKinds[kind], "]")
                          : absl::StrCat("[CUDA memcpy kind ", kind, "]"));
}

class Nsys {
 public:
  explicit Nsys(const SqliteReader& database) : database_(database) {}

  absl::StatusOr<Profile> Read() {
    RETURN_IF_ERROR(ReadTables());
    Profile profile;
    profile.tool = "nsys";
    std::vector<ProfileEntry>& gpu = profile.gpu_activities.entries;
    if (Has(kKernels)) {
      // Exports before 2020 have no demangled names.
      ASSIGN_OR_RETURN(const bool demangled,
                       HasColumn(kKernels, "demangledName"));
      RETURN_IF_ERROR(
          Named(kKernels, demangled ? "demangledName" : "shortName", gpu));
    }
    if (Has(kCopies)) RETURN_IF_ERROR(Copies(gpu));
    if (Has(kMemsets)) RETURN_IF_ERROR(Memsets(gpu));
    if (Has(kCalls)) {
      RETURN_IF_ERROR(Named(kCalls, "nameId", profile.api_calls.entries));
    }
    for (ProfileEntry& entry : profile.api_calls.entries) {
      entry.name = ApiName(entry.name);
    }
    RETURN_IF_ERROR(MergeEntries(gpu));
    RETURN_IF_ERROR(MergeEntries(profile.api_calls.entries));
    for (ProfileSection* section :
         {&profile.gpu_activities, &profile.api_calls}) {
      if (section->entries.empty()) section->missing = "not in the file";
    }
    if (gpu.empty() && profile.api_calls.entries.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a SQLite database, but not one of nsys with a CUDA trace: it has no "
          "rows in ",
          kKernels, ", ", kCopies, ", ", kMemsets, " or ", kCalls,
          tables_.empty() ? "; it has no tables"
                          : absl::StrCat("; its tables are ", FirstTables())));
    }
    RETURN_IF_ERROR(CheckProfile(profile));
    return profile;
  }

 private:
  static constexpr char kKernels[] = "CUPTI_ACTIVITY_KIND_KERNEL";
  static constexpr char kCopies[] = "CUPTI_ACTIVITY_KIND_MEMCPY";
  static constexpr char kMemsets[] = "CUPTI_ACTIVITY_KIND_MEMSET";
  static constexpr char kCalls[] = "CUPTI_ACTIVITY_KIND_RUNTIME";
  static constexpr char kNames[] = "StringIds";

  bool Has(const std::string& table) const { return tables_.count(table) > 0; }

  std::string FirstTables() const {
    constexpr size_t kMost = 5;
    std::vector<std::string> names;
    for (const std::string& table : tables_) {
      if (names.size() == kMost) {
        names.push_back("…");
        break;
      }
      names.push_back(InQuotes(table));
    }
    return absl::StrJoin(names, ", ");
  }

  absl::Status ReadTables() {
    // A virtual table has no page: a module computes its rows.
    ASSIGN_OR_RETURN(
        const SqliteQuery query,
        database_.Prepare("SELECT name FROM sqlite_master WHERE type = "
                          "'table' AND rootpage > 0",
                          "its list of tables"));
    for (;;) {
      ASSIGN_OR_RETURN(const bool row,
                       database_.Step(query, "its list of tables"));
      if (!row) break;
      tables_.insert(SqliteReader::Text(query, 0));
    }
    for (const char* table : {kKernels, kCopies, kMemsets, kCalls, kNames}) {
      if (Has(table)) RETURN_IF_ERROR(CheckColumns(table));
    }
    return absl::OkStatus();
  }

  // A generated column is an expression, which any value of the row may make
  // expensive.
  absl::Status CheckColumns(const std::string& table) const {
    ASSIGN_OR_RETURN(
        const SqliteQuery query,
        database_.Prepare(absl::StrCat("SELECT name FROM pragma_table_xinfo"
                                       "('",
                                       table, "') WHERE hidden <> 0"),
                          table));
    ASSIGN_OR_RETURN(const bool row, database_.Step(query, table));
    if (!row) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("not a database of nsys: the column ",
                     InQuotes(SqliteReader::Text(query, 0)), " of ", table,
                     " is computed, not stored"));
  }

  absl::StatusOr<bool> HasColumn(const std::string& table,
                                 const std::string& column) const {
    ASSIGN_OR_RETURN(
        const SqliteQuery query,
        database_.Prepare(absl::StrCat("SELECT 1 FROM pragma_table_info('",
                                       table, "') WHERE name = '", column, "'"),
                          table));
    return database_.Step(query, table);
  }

  // The columns that every query below selects after those of the name.
  static std::string Times() {
    return "COUNT(*), SUM(end - start), MIN(end - start), MAX(end - start), "
           "COUNT(end - start)";
  }

  // Returns the column as a number that a double can hold, as other totals are.
  absl::StatusOr<int64_t> Integer(const SqliteQuery& query, int column,
                                  absl::string_view table) const {
    const int64_t value = sqlite3_column_int64(query.get(), column);
    if (sqlite3_column_type(query.get(), column) != SQLITE_INTEGER ||
        value < 0 || value > int64_t{1} << 53) {
      return absl::InvalidArgumentError(
          absl::StrCat("the database is damaged: ", table, " holds ",
                       InQuotes(SqliteReader::Text(query, column)),
                       " where a number is expected"));
    }
    return value;
  }

  // Sums skip rows without the value; this checks that `column` counts all
  // rows.
  absl::Status CheckCount(const SqliteQuery& query, int column, int64_t rows,
                          absl::string_view table) const {
    ASSIGN_OR_RETURN(const int64_t count, Integer(query, column, table));
    if (count == rows) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the database is damaged: ", rows - count, " of ", rows,
                     " rows of ", table, " lack a time or a size"));
  }

  // An entry of the five columns of Times(), the first of which is `column`.
  absl::StatusOr<ProfileEntry> Entry(const SqliteQuery& query, int column,
                                     absl::string_view table) const {
    ProfileEntry entry;
    ASSIGN_OR_RETURN(entry.calls, Integer(query, column, table));
    RETURN_IF_ERROR(CheckCount(query, column + 4, *entry.calls, table));
    ASSIGN_OR_RETURN(entry.total_ns, Integer(query, column + 1, table));
    ASSIGN_OR_RETURN(entry.min_ns, Integer(query, column + 2, table));
    ASSIGN_OR_RETURN(entry.max_ns, Integer(query, column + 3, table));
    entry.average_ns = static_cast<double>(*entry.total_ns) / *entry.calls;
    return entry;
  }

  // One entry for each name that `column` of `table` refers to.
  absl::Status Named(const std::string& table, const std::string& column,
                     std::vector<ProfileEntry>& entries) const {
    if (!Has(kNames)) {
      return absl::InvalidArgumentError(
          "the database lacks the table StringIds, which holds all names");
    }
    // Rows are counted before they meet the names, of which a damaged file may
    // have several for one number.
    ASSIGN_OR_RETURN(
        const SqliteQuery query,
        database_.Prepare(
            absl::StrCat("SELECT name, value, counts.* FROM (SELECT ", column,
                         " AS name, ", Times(), " FROM ", table, " GROUP BY ",
                         column,
                         ") AS counts LEFT JOIN StringIds ON StringIds.id "
                         "= name ORDER BY 5 DESC"),
            table));
    std::set<std::string> seen;
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, database_.Step(query, table));
      if (!row) return absl::OkStatus();
      if (!seen.insert(SqliteReader::Text(query, 0)).second) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the database is damaged: StringIds holds two names ",
            "of the number ", InQuotes(SqliteReader::Text(query, 0))));
      }
      ASSIGN_OR_RETURN(ProfileEntry entry, Entry(query, 3, table));
      entry.name = SqliteReader::Text(query, 1);
      if (entry.name.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the database is damaged: ", table, " refers to the name ",
            InQuotes(SqliteReader::Text(query, 0)),
            ", which StringIds does not hold"));
      }
      entries.push_back(std::move(entry));
    }
  }

  absl::Status Copies(std::vector<ProfileEntry>& entries) const {
    ASSIGN_OR_RETURN(
        const SqliteQuery query,
        database_.Prepare(absl::StrCat("SELECT copyKind, SUM(bytes), ", Times(),
                                       ", COUNT(bytes) FROM ", kCopies,
                                       " GROUP BY copyKind ORDER BY 4 DESC"),
                          kCopies));
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, database_.Step(query, kCopies));
      if (!row) return absl::OkStatus();
      ASSIGN_OR_RETURN(ProfileEntry entry, Entry(query, 2, kCopies));
      RETURN_IF_ERROR(CheckCount(query, 7, *entry.calls, kCopies));
      ASSIGN_OR_RETURN(const int64_t kind, Integer(query, 0, kCopies));
      entry.name = CopyName(kind);
      ASSIGN_OR_RETURN(entry.bytes, Integer(query, 1, kCopies));
      entries.push_back(std::move(entry));
    }
  }

  absl::Status Memsets(std::vector<ProfileEntry>& entries) const {
    ASSIGN_OR_RETURN(
        const SqliteQuery query,
        database_.Prepare(
            absl::StrCat("SELECT SUM(bytes), ", Times(), ", COUNT(bytes) FROM ",
                         kMemsets, " HAVING COUNT(*) > 0"),
            kMemsets));
    ASSIGN_OR_RETURN(const bool row, database_.Step(query, kMemsets));
    if (!row) return absl::OkStatus();
    ASSIGN_OR_RETURN(ProfileEntry entry, Entry(query, 1, kMemsets));
    RETURN_IF_ERROR(CheckCount(query, 6, *entry.calls, kMemsets));
    entry.name = "[CUDA memset]";
    ASSIGN_OR_RETURN(entry.bytes, Integer(query, 0, kMemsets));
    entries.push_back(std::move(entry));
    return absl::OkStatus();
  }

  const SqliteReader& database_;
  std::set<std::string> tables_;
};

}  // namespace

absl::StatusOr<Profile> ReadNsysSqlite(const std::string& path) {
  ASSIGN_OR_RETURN(const auto database, SqliteReader::Open(path));
  return Nsys(*database).Read();
}

absl::StatusOr<Profile> ParseNsysSqlite(absl::string_view content) {
  ASSIGN_OR_RETURN(const auto database, SqliteReader::Parse(content));
  return Nsys(*database).Read();
}

}  // namespace convlab
