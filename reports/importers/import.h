// Reads a profile from any supported file, recognized by its content: nvprof's
// summary, `nsys stats`, an nsys SQLite export, ncu --csv, or our own run
// record.
#ifndef REPORTS_IMPORTERS_IMPORT_H_
#define REPORTS_IMPORTERS_IMPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/profile.h"

namespace convlab {

// Reads the profile in the file `path`. InvalidArgument says what the file
// lacks or where it is damaged; errors name the path.
absl::StatusOr<Profile> ImportProfile(const std::string& path);

// The same for the content of a file, without a path.
absl::StatusOr<Profile> ParseProfile(absl::string_view content);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_IMPORT_H_
