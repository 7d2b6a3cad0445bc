#include "common/ranks/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status/status.h"

namespace convlab {
namespace {

// In front of the memory: a number that tells it from any other, since the same
// process number and descriptor are something else in another container.
constexpr int64_t kFront = 4096;

absl::Status Refused(const char* call) {
  return absl::UnavailableError(
      absl::StrCat("shared memory: ", call, ": ", std::strerror(errno)));
}

}  // namespace

absl::Status SharedSegment::Map(int64_t bytes) {
  void* const mapped = mmap(nullptr, kFront + bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) return Refused("mmap");
  mapped_ = mapped;
  bytes_ = bytes;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Create(
    int64_t bytes) {
  auto memory = std::unique_ptr<SharedSegment>(new SharedSegment);
  memory->file_ = memfd_create("convlab", MFD_CLOEXEC);
  if (memory->file_ < 0) return Refused("memfd_create");
  // Beyond the limit of files ftruncate would end the program by a signal.
  struct rlimit files;
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 &&
      files.rlim_cur < static_cast<rlim_t>(kFront + bytes)) {
    return absl::UnavailableError("shared memory: files are limited to less");
  }
  if (ftruncate(memory->file_, kFront + bytes) != 0) {
    return Refused("ftruncate");
  }
  RETURN_IF_ERROR(memory->Map(bytes));
  uint64_t key = 0;
  if (getrandom(&key, sizeof(key), 0) != sizeof(key)) {
    return Refused("getrandom");
  }
  std::memcpy(memory->mapped_, &key, sizeof(key));
  memory->handle_ = absl::StrCat(getpid(), " ", memory->file_, " ", key);
  return memory;
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Open(
    const std::string& handle) {
  const std::vector<std::string> parts = absl::StrSplit(handle, ' ');
  int process = 0, file = 0;
  uint64_t key = 0, found = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &process) ||
      !absl::SimpleAtoi(parts[1], &file) || !absl::SimpleAtoi(parts[2], &key)) {
    return absl::InternalError("the handle of shared memory is not one");
  }
  auto memory = std::unique_ptr<SharedSegment>(new SharedSegment);
  // Without waiting, should it be a pipe's by now.
  memory->file_ = open(absl::StrCat("/proc/", process, "/fd/", file).c_str(),
                       O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (memory->file_ < 0) return Refused("open");
  struct stat info;
  if (fstat(memory->file_, &info) != 0) return Refused("fstat");
  const absl::Status other = absl::UnavailableError(
      "shared memory: what its handle names is something else");
  if (!S_ISREG(info.st_mode) || info.st_size < kFront) return other;
  RETURN_IF_ERROR(memory->Map(info.st_size - kFront));
  std::memcpy(&found, memory->mapped_, sizeof(found));
  if (found != key) return other;
  memory->handle_ = handle;
  return memory;
}

SharedSegment::~SharedSegment() {
  if (mapped_ != nullptr) munmap(mapped_, kFront + bytes_);
  if (file_ >= 0) close(file_);
}

uint8_t* SharedSegment::data() const {
  return static_cast<uint8_t*>(mapped_) + kFront;
}

}  // namespace convlab
