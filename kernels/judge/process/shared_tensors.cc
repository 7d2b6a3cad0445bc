#include "kernels/judge/process/shared_tensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace convlab {
namespace {

constexpr size_t kPage = 4096;
// Of vector loads; what an overrun writes into the gap is found afterwards.
constexpr size_t kAlignment = 64;
// More than an image, so that an index that is off by one image is caught.
constexpr size_t kGuard = size_t{16} << 20;
// A NaN, so that a value that is read from a red zone shows in the output.
constexpr uint32_t kZone = 0x7fd5a5a5;

size_t RoundUp(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

__extension__ using Wide = unsigned __int128;

uint64_t Mix(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// A hash under a secret of this process, so that no change can be made to
// leave it as it is. The multiplications are those of wyhash (Wang Yi).
uint64_t Fingerprint(const char* data, size_t bytes) {
  static const std::array<uint64_t, 2> secret = [] {
    std::array<uint64_t, 2> value = {};
    const ssize_t got = getrandom(value.data(), sizeof(value), 0);
    if (got != sizeof(value)) value = {0x9e3779b97f4a7c15, 0xd1b54a32d192ed03};
    return value;
  }();
  uint64_t hash = secret[0] ^ bytes;
  uint64_t words[2];
  while (bytes > 0) {
    const size_t count = std::min(bytes, sizeof(words));
    if (count < sizeof(words)) std::memset(words, 0, sizeof(words));
    std::memcpy(words, data, count);
    hash = Mix(words[0] ^ secret[1], words[1] ^ hash) + secret[0];
    data += count;
    bytes -= count;
  }
  return hash;
}

// Behind an input. Files of the course copy as many weights as their constant
// memory holds, or a whole block of pixels, which harmed nobody: so much may be
// read there, and nothing written.
constexpr size_t kReadable = size_t{1} << 16;

// Zones are compared and filled by bytes: their ends are those of tensors.
uint8_t ZoneByte(size_t offset) {
  return static_cast<uint8_t>(kZone >> (8 * (offset % 4)));
}

void FillZone(char* pages, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i)
    pages[i] = static_cast<char>(ZoneByte(i));
}

// The least and the greatest offset in [begin, end) that is damaged; false if
// none is.
bool FindDamage(const char* pages, size_t begin, size_t end, size_t* first,
                size_t* last) {
  bool damaged = false;
  for (size_t i = begin; i < end; ++i) {
    if (static_cast<uint8_t>(pages[i]) == ZoneByte(i)) continue;
    if (!damaged) *first = i;
    *last = i;
    damaged = true;
  }
  return damaged;
}

// What the machine, or this process's control group, still has.
int64_t AvailableBytes() {
  int64_t available = INT64_MAX;
  if (std::FILE* const file = std::fopen("/proc/meminfo", "re")) {
    char line[128];
    long long kilobytes;
    while (std::fgets(line, sizeof(line), file) != nullptr) {
      if (std::sscanf(line, "MemAvailable: %lld kB", &kilobytes) == 1) {
        available = kilobytes * 1024;
      }
    }
    std::fclose(file);
  }
  const auto read_number = [](const char* path, int64_t* value) {
    std::FILE* const file = std::fopen(path, "re");
    if (file == nullptr) return false;
    char text[64] = {};
    const bool read = std::fgets(text, sizeof(text), file) != nullptr;
    std::fclose(file);
    return read && absl::SimpleAtoi(text, value);
  };
  int64_t limit, used;
  if (read_number("/sys/fs/cgroup/memory.max", &limit) &&
      read_number("/sys/fs/cgroup/memory.current", &used)) {
    available = std::min(available, limit - used);
  }
  return available;
}

absl::Status Failed(const char* call) {
  const absl::StatusCode code = errno == ENOMEM || errno == ENOSPC
                                    ? absl::StatusCode::kResourceExhausted
                                    : absl::StatusCode::kInternal;
  return absl::Status(code, absl::StrCat("memory of the tensors: ", call, ": ",
                                         std::strerror(errno)));
}

bool Same(const Problem& a, const Problem& b) {
  return a.batch == b.batch && a.channels == b.channels &&
         a.height == b.height && a.width == b.width && a.filters == b.filters &&
         a.kernel_size == b.kernel_size;
}

}  // namespace

TensorLayout::TensorLayout(const Problem& problem) {
  const std::array<int64_t, 3> elements = {problem.input_elements(),
                                           problem.kernel_elements(),
                                           problem.output_elements()};
  for (int i = 0; i < 3; ++i) {
    Part& part = parts[i];
    part.offset = size;
    part.bytes = static_cast<size_t>(elements[i]) * sizeof(float);
    const size_t aligned = RoundUp(part.bytes, kAlignment);
    part.begin = RoundUp(aligned, kPage) - aligned;
    part.size = part.begin + aligned + (i < 2 ? kReadable : 0);
    size += part.size;
  }
}

absl::StatusOr<SharedMemory> SharedMemory::Create(const Problem& problem) {
  const TensorLayout layout(problem);
  if (const int64_t available = AvailableBytes();
      static_cast<int64_t>(layout.size) > available) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the tensors need ", layout.size >> 20, " MiB of memory, but only ",
        available >> 20, " MiB are available"));
  }
  SharedMemory memory;
  memory.problem_ = problem;
  memory.file_ = memfd_create("tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory.file_ < 0) return Failed("memfd_create");
  // Sealed, since reading behind the end of a file that the kernel has
  // shortened would end the judge.
  if (ftruncate(memory.file_, static_cast<off_t>(layout.size)) != 0 ||
      fcntl(memory.file_, F_ADD_SEALS,
            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Failed("ftruncate");
  }
  void* const data = mmap(nullptr, layout.size, PROT_READ | PROT_WRITE,
                          MAP_SHARED, memory.file_, 0);
  if (data == MAP_FAILED) return Failed("mmap");
  memory.data_ = static_cast<char*>(data);
  memory.size_ = layout.size;
  for (const TensorLayout::Part& part : layout.parts) {
    char* const pages = memory.data_ + part.offset;
    FillZone(pages, 0, part.begin);
    FillZone(pages, part.begin + part.bytes, part.size);
  }
  return memory;
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(problem_, other.problem_);
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(fingerprints_, other.fingerprints_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, size_);
  if (file_ >= 0) close(file_);
}

bool SharedMemory::Holds(const Problem& problem) const {
  return data_ != nullptr && Same(problem, problem_);
}

char* SharedMemory::begin(int part) const {
  const TensorLayout layout(problem_);
  return data_ + layout.parts[part].offset + layout.parts[part].begin;
}

SharedTensors SharedMemory::tensors() const {
  const auto view = [&](int part, int64_t elements) {
    return absl::MakeSpan(reinterpret_cast<float*>(begin(part)),
                          static_cast<size_t>(elements));
  };
  return {view(0, problem_.input_elements()),
          view(1, problem_.kernel_elements()),
          view(2, problem_.output_elements())};
}

void SharedMemory::Remember() {
  const TensorLayout layout(problem_);
  for (int i = 0; i < 2; ++i) {
    fingerprints_[i] = Fingerprint(begin(i), layout.parts[i].bytes);
  }
}

absl::Status SharedMemory::Check() const {
  const TensorLayout layout(problem_);
  for (int i = 0; i < 3; ++i) {
    const TensorLayout::Part& part = layout.parts[i];
    const char* const pages = data_ + part.offset;
    const size_t end = part.begin + part.bytes;
    size_t first, last;
    if (FindDamage(pages, end, part.size, &first, &last)) {
      return absl::AbortedError(absl::StrCat(
          "wrote up to ",
          DescribePlace(kTensorNames[i], static_cast<int64_t>(last - end))));
    }
    if (FindDamage(pages, 0, part.begin, &first, &last)) {
      return absl::AbortedError(absl::StrCat(
          "wrote up to ",
          DescribePlace(kTensorNames[i],
                        -static_cast<int64_t>(part.begin - first))));
    }
    if (i < 2 && Fingerprint(begin(i), part.bytes) != fingerprints_[i]) {
      return absl::AbortedError(
          absl::StrCat("changed its input ", kTensorNames[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status GuardedTensors::Map(const Problem& problem, int file) {
  if (data_ != nullptr) munmap(data_, size_);
  const TensorLayout layout(problem);
  size_ = layout.size + 4 * kGuard;
  void* const reserved =
      mmap(nullptr, size_, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) {
    data_ = nullptr;
    return Failed("mmap");
  }
  data_ = static_cast<char*>(reserved);
  for (int i = 0; i < 3; ++i) {
    const TensorLayout::Part& part = layout.parts[i];
    // Populated, so that no page fault is part of a time.
    void* const pages =
        mmap(data_ + part.offset + (i + 1) * kGuard, part.size,
             PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
             file, static_cast<off_t>(part.offset));
    if (pages == MAP_FAILED) return Failed("mmap");
    tensors_[i] =
        reinterpret_cast<float*>(static_cast<char*>(pages) + part.begin);
    bytes_[i] = part.bytes;
  }
  return absl::OkStatus();
}

bool GuardedTensors::Near(const void* address, int* tensor,
                          int64_t* distance) const {
  const auto place = reinterpret_cast<intptr_t>(address);
  for (int i = 0; i < 3; ++i) {
    const auto begin = reinterpret_cast<intptr_t>(tensors_[i]);
    const auto end = begin + static_cast<intptr_t>(bytes_[i]);
    *tensor = i;
    if (place >= end && place - end < static_cast<intptr_t>(kGuard) / 2) {
      *distance = place - end;
      return true;
    }
    if (place < begin && begin - place <= static_cast<intptr_t>(kGuard) / 2) {
      *distance = place - begin;
      return true;
    }
  }
  return false;
}

std::string DescribePlace(const char* tensor, int64_t distance) {
  return distance >= 0 ? absl::StrCat(distance + 1, " bytes behind ", tensor)
                       : absl::StrCat(-distance, " bytes before ", tensor);
}

}  // namespace convlab
