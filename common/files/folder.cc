#include "common/files/folder.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/status/status.h"

namespace convlab {
namespace {

struct FolderCloser {
  void operator()(DIR* folder) const { closedir(folder); }
};

}  // namespace

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  const std::unique_ptr<DIR, FolderCloser> open(opendir(folder.c_str()));
  if (open == nullptr) return FileError("read", folder, errno);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(open.get());
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  if (errno != 0) return FileError("read", folder, errno);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::vector<std::string>> PathsBelow(const std::string& folder) {
  std::vector<std::string> paths;
  std::vector<std::string> folders = {folder};  // not yet read, the next last
  while (!folders.empty()) {
    const std::string next = std::move(folders.back());
    folders.pop_back();
    ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(next));
    for (const std::string& name : names) {
      const bool ends = absl::EndsWith(next, "/");
      paths.push_back(absl::StrCat(next, ends ? "" : "/", name));
      struct stat info;
      if (lstat(paths.back().c_str(), &info) != 0) {
        return FileError("read", paths.back(), errno);
      }
      if (S_ISDIR(info.st_mode)) folders.push_back(paths.back());
    }
  }
  return paths;
}

}  // namespace convlab
