// What `nsys export --type sqlite` writes: a database with a row for each
// kernel, copy, memset and API call. It has only those tables that have rows.
#ifndef REPORTS_IMPORTERS_NSYS_SQLITE_H_
#define REPORTS_IMPORTERS_NSYS_SQLITE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/profile.h"

namespace convlab {

// Whether a file that begins so is a SQLite database.
bool IsSqlite(absl::string_view beginning);

// The profile in a file, which is only read, or in a file's content.
// InvalidArgument says which table or column is missing, or that the database
// is damaged.
absl::StatusOr<Profile> ReadNsysSqlite(const std::string& path);
absl::StatusOr<Profile> ParseNsysSqlite(absl::string_view content);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_NSYS_SQLITE_H_
