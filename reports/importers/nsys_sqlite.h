// Reads what `nsys export --type sqlite` writes: a database with a row for each
// kernel, copy, memset and API call. It has only tables with rows.
#ifndef REPORTS_IMPORTERS_NSYS_SQLITE_H_
#define REPORTS_IMPORTERS_NSYS_SQLITE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/profile.h"

namespace convlab {

// Read the profile in a file, without changing it or anything beside it, or in
// a file's content. InvalidArgument says which table or column is missing, or
// that the database is damaged, not complete, or holds what nsys does not
// write.
absl::StatusOr<Profile> ReadNsysSqlite(const std::string& path);
absl::StatusOr<Profile> ParseNsysSqlite(absl::string_view content);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_NSYS_SQLITE_H_
