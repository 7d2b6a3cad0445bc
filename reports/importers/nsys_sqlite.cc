#include "reports/importers/nsys_sqlite.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/record/activities.h"
#include "common/status/status.h"
#include "reports/importers/summary.h"
#include "reports/importers/text.h"
#include "sqlite3.h"

namespace convlab {
namespace {

constexpr absl::string_view kMagic("SQLite format 3\0", 16);

struct Closer {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt* query) const { sqlite3_finalize(query); }
};
using DatabaseHandle = std::unique_ptr<sqlite3, Closer>;
using Query = std::unique_ptr<sqlite3_stmt, Closer>;

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

class Database {
 public:
  explicit Database(DatabaseHandle handle) : handle_(std::move(handle)) {
    sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0,
                      nullptr);
  }

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
    return profile;
  }

 private:
  static constexpr char kKernels[] = "CUPTI_ACTIVITY_KIND_KERNEL";
  static constexpr char kCopies[] = "CUPTI_ACTIVITY_KIND_MEMCPY";
  static constexpr char kMemsets[] = "CUPTI_ACTIVITY_KIND_MEMSET";
  static constexpr char kCalls[] = "CUPTI_ACTIVITY_KIND_RUNTIME";

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

  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("the database cannot be read: ", what, ": ",
                     OneLine(sqlite3_errmsg(handle_.get()))));
  }

  absl::StatusOr<Query> Prepare(const std::string& sql,
                                absl::string_view what) const {
    sqlite3_stmt* query = nullptr;
    const int code =
        sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &query, nullptr);
    Query owned(query);
    if (code != SQLITE_OK) return Error(what);
    return owned;
  }

  // Moves to the next row; returns whether there is one.
  absl::StatusOr<bool> Step(const Query& query, absl::string_view what) const {
    const int code = sqlite3_step(query.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return Error(what);
  }

  static std::string Text(const Query& query, int column) {
    const auto* const text =
        reinterpret_cast<const char*>(sqlite3_column_text(query.get(), column));
    return text == nullptr
               ? std::string()
               : std::string(text, sqlite3_column_bytes(query.get(), column));
  }

  absl::Status ReadTables() {
    ASSIGN_OR_RETURN(
        const Query query,
        Prepare("SELECT name FROM sqlite_master WHERE type = 'table'",
                "its list of tables"));
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, Step(query, "its list of tables"));
      if (!row) return absl::OkStatus();
      tables_.insert(Text(query, 0));
    }
  }

  absl::StatusOr<bool> HasColumn(const std::string& table,
                                 const std::string& column) const {
    ASSIGN_OR_RETURN(
        const Query query,
        Prepare(absl::StrCat("SELECT 1 FROM pragma_table_info('", table,
                             "') WHERE name = '", column, "'"),
                table));
    return Step(query, table);
  }

  // The columns that every query below selects after those of the name.
  static std::string Times() {
    return "COUNT(*), SUM(end - start), MIN(end - start), MAX(end - start), "
           "COUNT(end - start)";
  }

  // Returns the column as a number that a double can hold, as other totals are.
  absl::StatusOr<int64_t> Integer(const Query& query, int column,
                                  absl::string_view table) const {
    const int64_t value = sqlite3_column_int64(query.get(), column);
    if (sqlite3_column_type(query.get(), column) != SQLITE_INTEGER ||
        value < 0 || value > int64_t{1} << 53) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the database is damaged: ", table, " holds ",
          InQuotes(Text(query, column)), " where a number is expected"));
    }
    return value;
  }

  // Sums skip rows without the value; this checks that `column` counts all
  // rows.
  absl::Status CheckCount(const Query& query, int column, int64_t rows,
                          absl::string_view table) const {
    ASSIGN_OR_RETURN(const int64_t count, Integer(query, column, table));
    if (count == rows) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the database is damaged: ", rows - count, " of ", rows,
                     " rows of ", table, " lack a time or a size"));
  }

  // An entry of the five columns of Times(), the first of which is `column`.
  absl::StatusOr<ProfileEntry> Entry(const Query& query, int column,
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
    if (!Has("StringIds")) {
      return absl::InvalidArgumentError(
          "the database lacks the table StringIds, which holds all names");
    }
    ASSIGN_OR_RETURN(
        const Query query,
        Prepare(absl::StrCat("SELECT ", column, ", value, ", Times(), " FROM ",
                             table, " LEFT JOIN StringIds ON StringIds.id = ",
                             column, " GROUP BY ", column, " ORDER BY 4 DESC"),
                table));
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, Step(query, table));
      if (!row) return absl::OkStatus();
      ASSIGN_OR_RETURN(ProfileEntry entry, Entry(query, 2, table));
      entry.name = Text(query, 1);
      if (entry.name.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the database is damaged: ", table, " refers to the name ",
            InQuotes(Text(query, 0)), ", which StringIds does not hold"));
      }
      entries.push_back(std::move(entry));
    }
  }

  absl::Status Copies(std::vector<ProfileEntry>& entries) const {
    ASSIGN_OR_RETURN(
        const Query query,
        Prepare(absl::StrCat("SELECT copyKind, SUM(bytes), ", Times(),
                             ", COUNT(bytes) FROM ", kCopies,
                             " GROUP BY copyKind ORDER BY 4 DESC"),
                kCopies));
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, Step(query, kCopies));
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
    ASSIGN_OR_RETURN(const Query query,
                     Prepare(absl::StrCat("SELECT SUM(bytes), ", Times(),
                                          ", COUNT(bytes) FROM ", kMemsets,
                                          " HAVING COUNT(*) > 0"),
                             kMemsets));
    ASSIGN_OR_RETURN(const bool row, Step(query, kMemsets));
    if (!row) return absl::OkStatus();
    ASSIGN_OR_RETURN(ProfileEntry entry, Entry(query, 1, kMemsets));
    RETURN_IF_ERROR(CheckCount(query, 6, *entry.calls, kMemsets));
    entry.name = "[CUDA memset]";
    ASSIGN_OR_RETURN(entry.bytes, Integer(query, 0, kMemsets));
    entries.push_back(std::move(entry));
    return absl::OkStatus();
  }

  const DatabaseHandle handle_;
  std::set<std::string> tables_;
};

absl::StatusOr<Profile> ReadDatabase(int code, DatabaseHandle handle) {
  if (code != SQLITE_OK) {
    return absl::InvalidArgumentError(
        absl::StrCat("the database cannot be opened: ", sqlite3_errstr(code)));
  }
  return Database(std::move(handle)).Read();
}

}  // namespace

bool IsSqlite(absl::string_view beginning) {
  return absl::StartsWith(beginning, kMagic);
}

absl::StatusOr<Profile> ReadNsysSqlite(const std::string& path) {
  sqlite3* database = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr);
  return ReadDatabase(code, DatabaseHandle(database));
}

absl::StatusOr<Profile> ParseNsysSqlite(absl::string_view content) {
  if (!IsSqlite(content)) {
    return absl::InvalidArgumentError("this is no SQLite database");
  }
  sqlite3* database = nullptr;
  int code =
      sqlite3_open_v2(":memory:", &database, SQLITE_OPEN_READWRITE, nullptr);
  DatabaseHandle handle(database);
  // SQLite frees it.
  auto* const bytes =
      static_cast<unsigned char*>(sqlite3_malloc64(content.size()));
  if (bytes == nullptr) return absl::InternalError("out of memory");
  std::memcpy(bytes, content.data(), content.size());
  if (code == SQLITE_OK) {
    code = sqlite3_deserialize(
        database, "main", bytes, static_cast<sqlite3_int64>(content.size()),
        static_cast<sqlite3_int64>(content.size()),
        SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
  } else {
    sqlite3_free(bytes);
  }
  return ReadDatabase(code, std::move(handle));
}

}  // namespace convlab
