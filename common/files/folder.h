// What folders hold. std::filesystem's iterators end the program where memory
// is refused to them: libstdc++ 14 builds paths in functions that may not
// throw.
#ifndef COMMON_FILES_FOLDER_H_
#define COMMON_FILES_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace convlab {

// The names in a folder, sorted. The error is FileError's.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder);

// The paths of all that is below a folder, which they begin with: a folder
// comes before what it holds. Links to folders are not followed.
absl::StatusOr<std::vector<std::string>> PathsBelow(const std::string& folder);

}  // namespace convlab

#endif  // COMMON_FILES_FOLDER_H_
