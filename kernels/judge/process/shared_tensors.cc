#include "kernels/judge/process/shared_tensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/math/rounding.h"
#include "kernels/judge/process/fault.h"

namespace convlab {
namespace {

constexpr size_t kPage = 4096;
// A tensor's room, so that it is not made anew for each of many small problems.
constexpr size_t kLeastRoom = size_t{4} << 20;
// Of vector loads; what an overrun writes into the gap is found afterwards.
constexpr size_t kAlignment = 64;
// More than an image, so that an index that is off by one image is caught.
constexpr size_t kGuard = size_t{16} << 20;
// A NaN, so that a value that is read from a red zone shows in the output.
constexpr uint32_t kZone = 0x7fd5a5a5;

__extension__ using Wide = unsigned __int128;

uint64_t Mix(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// A hash under a secret of this process, so that no change can be made to
// leave it as it is. The multiplications are those of wyhash (Wang Yi); four
// chains of them run side by side, since each waits for its last product.
uint64_t Fingerprint(const char* data, size_t bytes) {
  static const std::array<uint64_t, 2> secret = [] {
    std::array<uint64_t, 2> value = {};
    const ssize_t got = getrandom(value.data(), sizeof(value), 0);
    if (got != sizeof(value)) value = {0x9e3779b97f4a7c15, 0xd1b54a32d192ed03};
    return value;
  }();
  constexpr size_t kChains = 4;
  std::array<uint64_t, kChains> hash;
  for (size_t i = 0; i < kChains; ++i) hash[i] = secret[0] ^ (bytes + i);
  uint64_t words[kChains][2];
  while (bytes > 0) {
    const size_t count = std::min(bytes, sizeof(words));
    if (count < sizeof(words)) std::memset(words, 0, sizeof(words));
    std::memcpy(words, data, count);
    for (size_t i = 0; i < kChains; ++i) {
      hash[i] = Mix(words[i][0] ^ secret[1], words[i][1] ^ hash[i]) + secret[0];
    }
    data += count;
    bytes -= count;
  }
  return Mix(Mix(hash[0] ^ secret[1], hash[1]) ^ hash[2], hash[3] ^ secret[0]);
}

// Behind an input. Files of the course copy as many weights as their constant
// memory holds, or a whole block of pixels, which harmed nobody: so much may be
// read there, and nothing written.
constexpr size_t kReadable = size_t{1} << 16;

// Zones are compared and filled by bytes: their ends are those of tensors.
uint8_t ZoneByte(size_t offset) {
  return static_cast<uint8_t>(kZone >> (8 * (offset % 4)));
}

void FillZone(char* region, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i)
    region[i] = static_cast<char>(ZoneByte(i));
}

// The least and the greatest offset in [begin, end) that is damaged; false if
// none is.
bool FindDamage(const char* region, size_t begin, size_t end, size_t* first,
                size_t* last) {
  bool damaged = false;
  for (size_t i = begin; i < end; ++i) {
    if (static_cast<uint8_t>(region[i]) == ZoneByte(i)) continue;
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

// Has the system clear new pages, by several threads: one clears them more
// slowly than a GPU computes what they hold.
void TouchPages(char* data, size_t size) {
  constexpr size_t kPiece = size_t{32} << 20;
  const size_t most = std::max(1U, std::thread::hardware_concurrency());
  const size_t count = std::min<size_t>({16, most, CeilDivide(size, kPiece)});
  std::vector<std::thread> threads;
  threads.reserve(count);
  const size_t share = RoundUp(CeilDivide(size, count), kPage);
  for (size_t begin = 0; begin < size; begin += share) {
    const auto touch = [=] {
      const size_t end = std::min(size, begin + share);
      for (size_t i = begin; i < end; i += kPage) data[i] = 0;
    };
    // Where the system refuses a thread, this one does its part. An exception
    // would leave threads behind that nobody joins.
    try {
      threads.emplace_back(touch);
    } catch (const std::exception&) {
      touch();
    }
  }
  for (std::thread& thread : threads) thread.join();
}

// For each tensor the larger room of the two.
TensorRoom Larger(const TensorRoom& a, const TensorRoom& b) {
  return {std::max(a[0], b[0]), std::max(a[1], b[1]), std::max(a[2], b[2])};
}

bool Same(const Problem& a, const Problem& b) {
  return a.batch == b.batch && a.channels == b.channels &&
         a.height == b.height && a.width == b.width && a.filters == b.filters &&
         a.kernel_size == b.kernel_size;
}

}  // namespace

TensorRoom RoomFor(const Problem& problem) {
  const std::array<int64_t, 3> elements = {problem.input_elements(),
                                           problem.kernel_elements(),
                                           problem.output_elements()};
  TensorRoom room;
  for (int i = 0; i < 3; ++i) {
    room[i] = static_cast<size_t>(elements[i]) * sizeof(float);
  }
  return room;
}

TensorLayout::TensorLayout(const TensorRoom& room, const Problem& problem) {
  const TensorRoom bytes = RoomFor(problem);
  for (int i = 0; i < 3; ++i) {
    Part& part = parts[i];
    const size_t readable = i < 2 ? kReadable : 0;
    part.offset = size;
    part.size = RoundUp(room[i], kPage) + readable;
    part.bytes = bytes[i];
    part.begin = part.size - readable - RoundUp(part.bytes, kAlignment);
    part.pages = part.begin / kPage * kPage;
    size += part.size;
  }
}

absl::Status SharedMemory::MakeRoom(const TensorRoom& room) {
  // The old memory goes first: the new one may need it.
  Release();
  room_ = room;
  problem_ = {};
  size_ = layout().size;
  if (const int64_t available = AvailableBytes(); bytes() > available) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the tensors need ", size_ >> 20, " MiB of memory, but only ",
        available >> 20, " MiB are available"));
  }
  file_ = memfd_create("tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file_ < 0) return Failed("memfd_create");
  // Sealed, since reading behind the end of a file that the kernel has
  // shortened would end the judge.
  if (ftruncate(file_, static_cast<off_t>(size_)) != 0 ||
      fcntl(file_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
          0) {
    return Failed("ftruncate");
  }
  void* const data =
      mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (data == MAP_FAILED) return Failed("mmap");
  data_ = static_cast<char*>(data);
  TouchPages(data_, size_);
  ++version_;
  return absl::OkStatus();
}

void SharedMemory::Release() {
  if (data_ != nullptr) munmap(data_, size_);
  if (file_ >= 0) close(file_);
  data_ = nullptr;
  file_ = -1;
}

absl::Status SharedMemory::Reserve(absl::Span<const Problem> problems) {
  TensorRoom room = {};
  for (const Problem& problem : problems) room = Larger(room, RoomFor(problem));
  if (data_ != nullptr && Larger(room, room_) == room_) return absl::OkStatus();
  return MakeRoom(Larger(room, room_));
}

absl::Status SharedMemory::Place(const Problem& problem) {
  const TensorRoom least = RoomFor(problem);
  if (data_ == nullptr || Larger(least, room_) != room_) {
    const TensorRoom room =
        Larger(Larger(least, room_), {kLeastRoom, kLeastRoom, kLeastRoom});
    absl::Status made = MakeRoom(room);
    // Where memory is short, no tensor has room that it does not need.
    if (!made.ok()) made = MakeRoom(least);
    if (!made.ok()) {
      Release();
      return made;
    }
  }
  problem_ = problem;
  for (const TensorLayout::Part& part : layout().parts) {
    char* const region = data_ + part.offset;
    FillZone(region, part.pages, part.begin);
    FillZone(region, part.begin + part.bytes, part.size);
  }
  return absl::OkStatus();
}

bool SharedMemory::Holds(const Problem& problem) const {
  return data_ != nullptr && Same(problem, problem_);
}

char* SharedMemory::begin(int part) const {
  const TensorLayout::Part place = layout().parts[part];
  return data_ + place.offset + place.begin;
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
  for (int i = 0; i < 2; ++i) {
    fingerprints_[i] = Fingerprint(begin(i), layout().parts[i].bytes);
  }
}

absl::Status SharedMemory::Check() const {
  const TensorLayout now = layout();
  for (int i = 0; i < 3; ++i) {
    const TensorLayout::Part& part = now.parts[i];
    const char* const region = data_ + part.offset;
    const size_t end = part.begin + part.bytes;
    size_t first, last;
    if (FindDamage(region, end, part.size, &first, &last)) {
      return KernelFault(
          Fault::kWroteOutside,
          absl::StrCat("wrote up to ",
                       DescribePlace(kTensorNames[i],
                                     static_cast<int64_t>(last - end))));
    }
    if (FindDamage(region, part.pages, part.begin, &first, &last)) {
      return KernelFault(
          Fault::kWroteOutside,
          absl::StrCat("wrote up to ", DescribePlace(kTensorNames[i],
                                                     -static_cast<int64_t>(
                                                         part.begin - first))));
    }
    if (i < 2 && Fingerprint(begin(i), part.bytes) != fingerprints_[i]) {
      return KernelFault(Fault::kBrokeRule,
                         absl::StrCat("changed its input ", kTensorNames[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status GuardedTensors::Map(const TensorRoom& room, int file) {
  if (data_ != nullptr) munmap(data_, size_);
  room_ = room;
  const TensorLayout layout(room, Problem());
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
    if (mmap(data_ + part.offset + (i + 1) * kGuard, part.size,
             PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
             file, static_cast<off_t>(part.offset)) == MAP_FAILED) {
      return Failed("mmap");
    }
  }
  return absl::OkStatus();
}

absl::Status GuardedTensors::Place(const Problem& problem) {
  const TensorLayout layout(room_, problem);
  for (int i = 0; i < 3; ++i) {
    const TensorLayout::Part& part = layout.parts[i];
    char* const region = data_ + part.offset + (i + 1) * kGuard;
    if (mprotect(region, part.pages, PROT_NONE) != 0 ||
        mprotect(region + part.pages, part.size - part.pages,
                 PROT_READ | PROT_WRITE) != 0) {
      return Failed("mprotect");
    }
    tensors_[i] = reinterpret_cast<float*>(region + part.begin);
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
