#include "reports/importers/sqlite_reader.h"

#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace convlab {
namespace {

constexpr absl::string_view kMagic("SQLite format 3\0", 16);

constexpr int kLongestValue = 1 << 20;  // bytes
// Steps of SQLite's machine: some for each byte of the file, since a query
// visits each row once or twice, and some for any file.
constexpr int kStepsPerCall = 1000000;
constexpr int64_t kSteps = 100000000;
constexpr int64_t kStepsPerByte = 16;
// SQLite makes room for what a row says it holds, before it sees that the file
// ends: a list of up to 2^23 pages for one row.
constexpr int64_t kMemory = 32 << 20;  // bytes, beside the content

// The path as SQLite's URI of a file that nobody changes: nothing is locked and
// no file is made beside it.
std::string ImmutableUri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    absl::StrAppendFormat(&uri, "%%%02X", static_cast<unsigned char>(c));
  }
  return uri + "?immutable=1";
}

// What all readers that are open may use, beside what others had before the
// first of them: SQLite's limit is the whole process's.
class MemoryLimit {
 public:
  void Add(int64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (readers_++ == 0) others_ = sqlite3_memory_used();
    allowed_ += bytes;
    sqlite3_hard_heap_limit64(others_ + allowed_);
  }

  void Remove(int64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    allowed_ -= bytes;
    sqlite3_hard_heap_limit64(--readers_ == 0 ? 0 : others_ + allowed_);
  }

 private:
  std::mutex mutex_;
  int readers_ = 0;
  int64_t others_ = 0, allowed_ = 0;
};

MemoryLimit& Limit() {
  static MemoryLimit* const limit = new MemoryLimit;
  return *limit;
}

absl::Status CannotOpen(int code) {
  return absl::InvalidArgumentError(
      absl::StrCat("the database cannot be opened: ", sqlite3_errstr(code)));
}

}  // namespace

SqliteMemory::SqliteMemory(int64_t bytes) : bytes_(bytes) {
  Limit().Add(bytes_);
}

SqliteMemory::~SqliteMemory() { Limit().Remove(bytes_); }

absl::StatusOr<std::unique_ptr<SqliteReader>> SqliteReader::Open(
    const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code none;
  for (const char* suffix : {"-wal", "-journal"}) {
    const std::string beside = path + suffix;
    if (fs::exists(beside, none) && fs::file_size(beside, none) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the database is not complete: a program has it open, "
                       "or was stopped, and ",
                       beside, " holds the rest: export it again"));
    }
  }
  const auto bytes = static_cast<int64_t>(fs::file_size(path, none));
  auto memory = std::make_unique<SqliteMemory>(kMemory);
  sqlite3* database = nullptr;
  const int code =
      sqlite3_open_v2(ImmutableUri(path).c_str(), &database,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  Handle handle(database);
  if (code != SQLITE_OK) return CannotOpen(code);
  return std::unique_ptr<SqliteReader>(
      new SqliteReader(std::move(memory), std::move(handle), none ? 0 : bytes));
}

absl::StatusOr<std::unique_ptr<SqliteReader>> SqliteReader::Parse(
    absl::string_view content) {
  if (!IsSqlite(content)) {
    return absl::InvalidArgumentError("this is no SQLite database");
  }
  const auto size = static_cast<sqlite3_int64>(content.size());
  auto memory = std::make_unique<SqliteMemory>(size + kMemory);
  sqlite3* database = nullptr;
  int code =
      sqlite3_open_v2(":memory:", &database, SQLITE_OPEN_READWRITE, nullptr);
  Handle handle(database);
  if (code != SQLITE_OK) return CannotOpen(code);
  auto* const bytes = static_cast<unsigned char*>(sqlite3_malloc64(size));
  if (bytes == nullptr) return absl::ResourceExhaustedError("out of memory");
  std::memcpy(bytes, content.data(), content.size());
  // SQLite frees the bytes.
  code = sqlite3_deserialize(
      database, "main", bytes, size, size,
      SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
  if (code != SQLITE_OK) return CannotOpen(code);
  return std::unique_ptr<SqliteReader>(
      new SqliteReader(std::move(memory), std::move(handle), size));
}

SqliteReader::SqliteReader(std::unique_ptr<SqliteMemory> memory, Handle handle,
                           int64_t bytes)
    : memory_(std::move(memory)),
      handle_(std::move(handle)),
      calls_left_((kSteps + kStepsPerByte * bytes) / kStepsPerCall) {
  sqlite3* const database = handle_.get();
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kLongestValue);
  sqlite3_limit(database, SQLITE_LIMIT_SQL_LENGTH, kLongestValue);
  sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(database, SQLITE_LIMIT_WORKER_THREADS, 0);
  sqlite3_progress_handler(
      database, kStepsPerCall,
      [](void* calls_left) {
        return --*static_cast<int64_t*>(calls_left) < 0 ? 1 : 0;
      },
      &calls_left_);
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
}

absl::Status SqliteReader::Error(absl::string_view what) const {
  if (sqlite3_errcode(handle_.get()) == SQLITE_INTERRUPT) {
    return absl::InvalidArgumentError(
        absl::StrCat("the database cannot be read: ", what,
                     " takes more steps than a file of its size needs"));
  }
  if (sqlite3_errcode(handle_.get()) == SQLITE_NOMEM) {
    return absl::InvalidArgumentError(
        absl::StrCat("the database cannot be read: ", what,
                     " takes more memory than any file needs"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the database cannot be read: ", what, ": ",
                   OneLine(sqlite3_errmsg(handle_.get()))));
}

absl::StatusOr<SqliteQuery> SqliteReader::Prepare(
    const std::string& sql, absl::string_view what) const {
  sqlite3_stmt* query = nullptr;
  const int code =
      sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &query, nullptr);
  SqliteQuery owned(query);
  if (code != SQLITE_OK) return Error(what);
  return owned;
}

absl::StatusOr<bool> SqliteReader::Step(const SqliteQuery& query,
                                        absl::string_view what) const {
  const int code = sqlite3_step(query.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return Error(what);
}

std::string SqliteReader::Text(const SqliteQuery& query, int column) {
  const auto* const text =
      reinterpret_cast<const char*>(sqlite3_column_text(query.get(), column));
  return text == nullptr
             ? std::string()
             : std::string(text, sqlite3_column_bytes(query.get(), column));
}

bool IsSqlite(absl::string_view beginning) {
  return absl::StartsWith(beginning, kMagic);
}

}  // namespace convlab
