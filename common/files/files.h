// Files as the programs of this project treat them: whole, named by the user
// from the folder the user stands in, and never left half-written.
#ifndef COMMON_FILES_FILES_H_
#define COMMON_FILES_FILES_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

// `path` as the user meant it. `bazel run` starts a program in a folder of its
// own and leaves the user's in BUILD_WORKING_DIRECTORY; a relative path is
// resolved against that where it is set.
std::string UserPath(absl::string_view path);

// A file read from its beginning, piece by piece.
class FileReader {
 public:
  // The error names the path and says what is wrong: NotFound or
  // PermissionDenied.
  static absl::StatusOr<FileReader> Open(const std::string& path);

  // Fills `out` with the next `size` bytes, or with fewer where the file ends;
  // returns how many. InvalidArgument for a folder.
  absl::StatusOr<size_t> Read(void* out, size_t size);

  // Bytes of a regular file; 0 for a pipe or a device.
  int64_t size() const { return size_; }

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  FileReader(std::string path, std::FILE* file);

  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
  int64_t size_ = 0;
};

// The content of the file `path`. The error names the path and says
// what is wrong: NotFound, PermissionDenied, or InvalidArgument for a folder.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes `content` to a temporary file beside `path` and renames it, so that
// `path` holds either its old content or all of the new.
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view content);

// Whether WriteFileAtomically(path) could begin: lets a program refuse a bad
// path before hours of work rather than after. Leaves nothing behind.
absl::Status CheckWritable(const std::string& path);

}  // namespace convlab

#endif  // COMMON_FILES_FILES_H_
