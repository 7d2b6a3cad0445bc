// A SQLite database that somebody else made, open for reading. A database is a
// program of a sort: its schema may hold expressions that take any time and
// memory, and reading may lock it or make files beside it. Here it is read as
// bytes that nobody changes, within limits.
#ifndef REPORTS_IMPORTERS_SQLITE_READER_H_
#define REPORTS_IMPORTERS_SQLITE_READER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sqlite3.h"

namespace convlab {

struct SqliteCloser {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt* query) const { sqlite3_finalize(query); }
};
using SqliteQuery = std::unique_ptr<sqlite3_stmt, SqliteCloser>;

// Lets SQLite have so many bytes more as long as this lives, in the whole
// process. Without any there is no limit.
class SqliteMemory {
 public:
  explicit SqliteMemory(int64_t bytes);
  SqliteMemory(const SqliteMemory&) = delete;
  SqliteMemory& operator=(const SqliteMemory&) = delete;
  ~SqliteMemory();

 private:
  const int64_t bytes_;
};

// Errors are InvalidArgument; `what` names what was to be read.
class SqliteReader {
 public:
  // Opens the file `path`, or a file's content. The error says that there is a
  // log beside the file, without which it is not complete, or that it is no
  // database.
  static absl::StatusOr<std::unique_ptr<SqliteReader>> Open(
      const std::string& path);
  static absl::StatusOr<std::unique_ptr<SqliteReader>> Parse(
      absl::string_view content);
  SqliteReader(const SqliteReader&) = delete;
  SqliteReader& operator=(const SqliteReader&) = delete;

  absl::StatusOr<SqliteQuery> Prepare(const std::string& sql,
                                      absl::string_view what) const;
  // Moves to the next row; returns whether there is one.
  absl::StatusOr<bool> Step(const SqliteQuery& query,
                            absl::string_view what) const;
  // The value of a column as text; empty for NULL.
  static std::string Text(const SqliteQuery& query, int column);

 private:
  using Handle = std::unique_ptr<sqlite3, SqliteCloser>;

  // `bytes` is the file's size.
  SqliteReader(std::unique_ptr<SqliteMemory> memory, Handle handle,
               int64_t bytes);
  absl::Status Error(absl::string_view what) const;

  const std::unique_ptr<SqliteMemory> memory_;  // of the handle
  const Handle handle_;
  int64_t calls_left_;  // of the progress handler, before it stops a query
};

// Whether a file with this beginning is a SQLite database.
bool IsSqlite(absl::string_view beginning);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_SQLITE_READER_H_
