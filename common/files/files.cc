#include "common/files/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"

namespace convlab {
namespace {

// The file that is written for `path`, and the permissions that it gets.
struct Target {
  std::string path;  // not that of a link
  mode_t mode;
};

// Renaming over a folder fails late, renaming over a device or a pipe destroys
// it, and renaming over a link or a protected file succeeds.
absl::StatusOr<Target> FindTarget(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    const mode_t mask = umask(0);
    umask(mask);
    return Target{path, 0666 & ~mask};
  }
  std::string target = path;
  if (S_ISLNK(info.st_mode)) {
    char* const resolved = realpath(path.c_str(), nullptr);
    if (resolved == nullptr || stat(resolved, &info) != 0) {
      std::free(resolved);
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot write ", path, ": it is a symbolic link to nothing"));
    }
    target = resolved;
    std::free(resolved);
  }
  if (S_ISDIR(info.st_mode)) return FileError("write", path, EISDIR);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write ", path, ": it is not a regular file"));
  }
  if (access(target.c_str(), W_OK) != 0) return FileError("write", path, errno);
  return Target{target, info.st_mode & 0777};
}

// Removes a file, or a folder and everything in it, as far as that is allowed.
// `name` is relative to the open folder `parent`. Needs no memory.
void RemoveTree(int parent, const char* name) {
  if (unlinkat(parent, name, 0) == 0) return;
  const int folder =
      openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  alignas(dirent64) char buffer[4096];
  ssize_t size;
  while ((size = getdents64(folder, buffer, sizeof(buffer))) > 0) {
    for (ssize_t at = 0; at < size;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      const absl::string_view name_in = entry->d_name;
      if (name_in != "." && name_in != "..") RemoveTree(folder, entry->d_name);
    }
  }
  close(folder);
  unlinkat(parent, name, AT_REMOVEDIR);
}

// The files and folders that destructors of AtomicFile and TemporaryFolder
// would remove, for a process that ends without them (std::quick_exit): one
// that was refused memory where no exception can go on.
struct TemporaryPath {
  pid_t owner;  // a process that this one makes has a list, and not the files
  std::string path;
};
struct TemporaryPaths {
  std::mutex mutex;
  std::list<TemporaryPath> paths;
};
TemporaryPaths& AllTemporaryPaths() {
  static auto* const all = new TemporaryPaths;
  return *all;
}

// Needs no memory.
void RemoveAll(const TemporaryPaths& all) {
  for (const TemporaryPath& temporary : all.paths) {
    if (temporary.owner == getpid()) {
      RemoveTree(AT_FDCWD, temporary.path.c_str());
    }
  }
}

void RemoveTemporaryPaths() {
  TemporaryPaths& all = AllTemporaryPaths();
  // The thread that ends the process may have it locked.
  const std::unique_lock<std::mutex> lock(all.mutex, std::try_to_lock);
  if (lock.owns_lock()) RemoveAll(all);
}

// Makes what `path` is a template for, by mkstemp or mkdtemp; returns whether
// make(path) did. All memory is taken before there is something to be removed.
template <typename Make>
bool MakeTemporary(std::string& path, const Make& make) {
  TemporaryPaths& all = AllTemporaryPaths();
  static const int registered = std::at_quick_exit(RemoveTemporaryPaths);
  static_cast<void>(registered);
  std::list<TemporaryPath> temporary = {{getpid(), path}};
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (!make(path.data())) return false;
  temporary.front().path = path;
  all.paths.splice(all.paths.end(), temporary);
  return true;
}

// It has another name now, or is removed.
void ForgetTemporary(const std::string& path) {
  TemporaryPaths& all = AllTemporaryPaths();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.paths.remove_if(
      [&](const TemporaryPath& temporary) { return temporary.path == path; });
}

void RemoveTemporary(const std::string& path) {
  RemoveTree(AT_FDCWD, path.c_str());
  ForgetTemporary(path);
}

// A stream for the descriptor, which is closed if there is none.
FilePointer OpenStream(int descriptor, const char* mode) {
  FilePointer file(fdopen(descriptor, mode));
  if (file == nullptr) {
    const int error = errno;
    close(descriptor);
    errno = error;
  }
  return file;
}

}  // namespace

absl::Status FileError(absl::string_view action, const std::string& path,
                       int error) {
  const std::string message =
      absl::StrCat("cannot ", action, " ", path, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
      return absl::InvalidArgumentError(message);
    default:
      return absl::InternalError(message);
  }
}

std::string UserPath(absl::string_view path) {
  const char* folder = std::getenv("BUILD_WORKING_DIRECTORY");
  if (folder == nullptr || path.empty() || path.front() == '/') {
    return std::string(path);
  }
  return absl::StrCat(folder, "/", path);
}

absl::StatusOr<TemporaryFolder> TemporaryFolder::Create(
    const std::string& parent) {
  std::error_code none;
  const std::filesystem::path folder =
      parent.empty() ? std::filesystem::temp_directory_path(none)
                     : std::filesystem::path(parent);
  std::string path = (folder / "convlab-XXXXXX").string();
  const auto make = [](char* name) { return mkdtemp(name) != nullptr; };
  if (none || !MakeTemporary(path, make)) {
    return FileError("make the temporary folder", path,
                     none ? none.value() : errno);
  }
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  if (!path_.empty()) RemoveTemporary(path_);
}

absl::StatusOr<FileReader> FileReader::Open(const std::string& path) {
  FilePointer file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return FileError("read", path, errno);
  return FileReader(path, std::move(file));
}

absl::StatusOr<FileReader> FileReader::StandardInput() {
  const std::string name = "standard input";
  // A descriptor of its own, which the reader may close.
  const int descriptor = dup(STDIN_FILENO);
  if (descriptor < 0) return FileError("read", name, errno);
  FilePointer file = OpenStream(descriptor, "rb");
  if (file == nullptr) return FileError("read", name, errno);
  return FileReader(name, std::move(file));
}

FileReader::FileReader(std::string path, FilePointer file)
    : path_(std::move(path)), file_(std::move(file)) {
  struct stat info;
  if (fstat(fileno(file_.get()), &info) == 0 && S_ISREG(info.st_mode)) {
    size_ = info.st_size;
  }
}

absl::StatusOr<size_t> FileReader::Read(void* out, size_t size) {
  size_t count = 0;
  for (;;) {
    count += std::fread(static_cast<char*>(out) + count, 1, size - count,
                        file_.get());
    if (count == size || !std::ferror(file_.get())) return count;
    if (errno != EINTR) return FileError("read", path_, errno);
    std::clearerr(file_.get());
  }
}

absl::StatusOr<size_t> FileReader::ReadAt(int64_t offset, void* out,
                                          size_t size) const {
  size_t count = 0;
  while (count < size) {
    const ssize_t read =
        pread(fileno(file_.get()), static_cast<char*>(out) + count,
              size - count, offset + static_cast<int64_t>(count));
    if (read == 0) break;
    if (read > 0) {
      count += read;
    } else if (errno != EINTR) {
      return FileError("read", path_, errno);
    }
  }
  return count;
}

absl::StatusOr<std::string> FileReader::ReadAll(int64_t most) {
  std::string content;
  content.reserve(std::min(size_, most) + 1);
  char buffer[1 << 16];
  for (;;) {
    ASSIGN_OR_RETURN(const size_t count, Read(buffer, sizeof(buffer)));
    if (count == 0) return content;
    if (static_cast<int64_t>(content.size() + count) > most) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot read ", path_, ": it has more than ", most, " bytes"));
    }
    content.append(buffer, count);
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t most) {
  ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path));
  return file.ReadAll(most);
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  ASSIGN_OR_RETURN(const Target target, FindTarget(path));
  // All of its memory is taken before there is a file to be removed.
  AtomicFile file(target.path, absl::StrCat(target.path, ".XXXXXX"));
  int descriptor = -1;
  const auto make = [&](char* name) {
    return (descriptor = mkstemp(name)) >= 0;
  };
  if (!MakeTemporary(file.temporary_path_, make)) {
    return FileError("write", target.path, errno);
  }
  fchmod(descriptor, target.mode);
  file.file_ = OpenStream(descriptor, "wb");
  if (file.file_ == nullptr) {
    const int error = errno;
    RemoveTemporary(file.temporary_path_);
    return FileError("write", target.path, error);
  }
  return file;
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) RemoveTemporary(temporary_path_);
}

absl::Status AtomicFile::Write(absl::string_view content) {
  if (std::fwrite(content.data(), 1, content.size(), file_.get()) ==
      content.size()) {
    return absl::OkStatus();
  }
  return FileError("write", path_, errno);
}

absl::Status AtomicFile::Commit() {
  const bool written =
      std::fflush(file_.get()) == 0 && fsync(fileno(file_.get())) == 0;
  const int error = errno;
  file_.reset();
  if (written && std::rename(temporary_path_.c_str(), path_.c_str()) == 0) {
    ForgetTemporary(temporary_path_);
    return absl::OkStatus();
  }
  const int cause = written ? errno : error;
  RemoveTemporary(temporary_path_);
  return FileError("write", path_, cause);
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view content) {
  ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  RETURN_IF_ERROR(file.Write(content));
  return file.Commit();
}

void AbandonTemporaryFiles() {
  TemporaryPaths& all = AllTemporaryPaths();
  all.mutex.lock();
  RemoveAll(all);
}

absl::Status CheckWritable(const std::string& path) {
  return AtomicFile::Create(path).status();
}

namespace {

bool SameFile(const std::string& a, const std::string& b) {
  std::error_code failed;
  if (std::filesystem::equivalent(a, b, failed)) return true;
  const auto normal = [&](const std::string& path) {
    const std::filesystem::path found =
        std::filesystem::weakly_canonical(path, failed);
    return failed ? std::filesystem::path(path) : found;
  };
  return normal(a) == normal(b);
}

}  // namespace

absl::Status CheckSeparate(const std::vector<NamedFile>& outputs,
                           const std::vector<NamedFile>& inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    if (output.path.empty()) continue;
    std::vector<NamedFile> others(outputs.begin() + i + 1, outputs.end());
    others.insert(others.end(), inputs.begin(), inputs.end());
    for (const NamedFile& other : others) {
      if (other.path.empty() || !SameFile(output.path, other.path)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(output.flag, " and ", other.flag, " are both ",
                       output.path, ", expected two files"));
    }
  }
  return absl::OkStatus();
}

}  // namespace convlab
