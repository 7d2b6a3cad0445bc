// Files: paths are relative to the user's folder, and files are read and
// written as a whole, never left half-written.
#ifndef COMMON_FILES_FILES_H_
#define COMMON_FILES_FILES_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

// Resolves `path` against the user's folder. `bazel run` starts a program in a
// folder of its own and passes the user's in BUILD_WORKING_DIRECTORY; if that
// is set, relative paths are resolved against it.
std::string UserPath(absl::string_view path);

// The error `error`, an errno, of a call on `path`: "cannot read a.json: No
// such file or directory". NotFound, PermissionDenied or InvalidArgument if the
// path that the user gave is at fault, otherwise Internal.
absl::Status FileError(absl::string_view action, const std::string& path,
                       int error);

// Closes the file with the pointer.
struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePointer = std::unique_ptr<std::FILE, FileCloser>;

// A new folder that is removed with the object and everything in it. Movable.
class TemporaryFolder {
 public:
  // Creates it in `parent`; if that is empty, in the system's folder for
  // temporary files. The error names the folder.
  static absl::StatusOr<TemporaryFolder> Create(const std::string& parent = "");
  TemporaryFolder(TemporaryFolder&& other) noexcept { path_.swap(other.path_); }
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty: moved from
};

// Reads a file from its beginning, piece by piece.
class FileReader {
 public:
  // The error names the path and says what is wrong: NotFound or
  // PermissionDenied.
  static absl::StatusOr<FileReader> Open(const std::string& path);
  // Reads standard input, which errors call so.
  static absl::StatusOr<FileReader> StandardInput();

  // Fills `out` with the next `size` bytes, or with fewer where the file ends;
  // returns how many. InvalidArgument for a folder.
  absl::StatusOr<size_t> Read(void* out, size_t size);

  // The same from byte `offset` of a regular file, by any thread; Read goes on
  // where it was.
  absl::StatusOr<size_t> ReadAt(int64_t offset, void* out, size_t size) const;

  // Returns all that is left. InvalidArgument if that is more than `most`
  // bytes, of which no more are read: a device has no end.
  absl::StatusOr<std::string> ReadAll(int64_t most);

  // The size of a regular file in bytes; 0 for a pipe or a device.
  int64_t size() const { return size_; }

 private:
  // Takes over an open file.
  FileReader(std::string path, FilePointer file);

  std::string path_;
  FilePointer file_;
  int64_t size_ = 0;
};

// Far above what any program of ours reads as a whole.
inline constexpr int64_t kLargestFile = int64_t{256} << 20;

// Returns the content of the file `path`. The error names the path and says
// what is wrong: NotFound, PermissionDenied, or InvalidArgument for a folder
// and for a file of more than `most` bytes.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t most = kLargestFile);

// Writes a file piece by piece to a temporary file beside `path`, and renames
// it when it is complete, so that `path` holds either its old content or all of
// the new. A file that is replaced keeps its permissions, and a symbolic link
// stays one: what it points to is replaced. Movable.
class AtomicFile {
 public:
  // The error names the path: NotFound, PermissionDenied or InvalidArgument if
  // the path cannot be written or is not that of a regular file, or is a link
  // to nothing.
  static absl::StatusOr<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&&) = default;
  // Removes the temporary file.
  ~AtomicFile();

  absl::Status Write(absl::string_view content);
  // Brings the content to the disk and the file under its name. Nothing can be
  // written any more, whether or not that succeeds.
  absl::Status Commit();

  const std::string& temporary_path() const { return temporary_path_; }

 private:
  AtomicFile(std::string path, std::string temporary_path)
      : path_(std::move(path)), temporary_path_(std::move(temporary_path)) {}

  std::string path_, temporary_path_;
  FilePointer file_;
};

// Writes `content` as an AtomicFile.
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view content);

// For a process that a signal is about to end: removes the temporary files of
// each AtomicFile and each TemporaryFolder, wherever they are. A thread that
// makes or ends one from now on waits for ever.
void AbandonTemporaryFiles();

// Checks whether WriteFileAtomically(path) could begin, so that a program can
// reject a bad path before hours of work rather than after. It leaves no file
// behind.
absl::Status CheckWritable(const std::string& path);

// A file that the command line names; nothing if the path is empty.
struct NamedFile {
  absl::string_view flag;
  std::string path;
};

// Checks that no output is another output or an input, under whatever name, so
// that no file replaces another one. The error names both flags.
absl::Status CheckSeparate(const std::vector<NamedFile>& outputs,
                           const std::vector<NamedFile>& inputs);

}  // namespace convlab

#endif  // COMMON_FILES_FILES_H_
