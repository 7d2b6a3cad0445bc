// The memory in which the judge hands tensors to the kernel's process. Each
// tensor has a region, which is kept from problem to problem as long as it is
// large enough: to map a gigabyte takes longer than most kernels do. The tensor
// ends where the region ends, up to its alignment; what remains of its pages is
// a red zone with a known pattern. In the kernel's process the region's pages
// before the tensor, and what lies round the region, cannot be touched.
#ifndef KERNELS_JUDGE_PROCESS_SHARED_TENSORS_H_
#define KERNELS_JUDGE_PROCESS_SHARED_TENSORS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/convolution/problem.h"
#include "kernels/judge/process/process.h"

namespace convlab {

// The bytes that the tensors x, k and y may have.
using TensorRoom = std::array<size_t, 3>;

// What this problem's tensors have.
TensorRoom RoomFor(const Problem& problem);

// Where a problem's tensors x, k and y lie in the shared file, in bytes.
struct TensorLayout {
  struct Part {
    size_t offset = 0;  // of its region
    size_t size = 0;    // of its region
    size_t pages = 0;   // of the tensor's first page, from `offset`
    size_t begin = 0;   // of the tensor, from `offset`
    size_t bytes = 0;   // of the tensor
  };
  // No tensor of the problem is larger than its room.
  TensorLayout(const TensorRoom& room, const Problem& problem);
  std::array<Part, 3> parts;
  size_t size = 0;
};

constexpr std::array<const char*, 3> kTensorNames = {"x", "k", "y"};

// The judge's side. The processes of a kernel may use the same memory one after
// another, not at the same time; all functions are to be called while none of
// them runs.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { Release(); }

  // Makes room for the tensors of each of the problems, one at a time, so that
  // Place does not have to: that takes a second for four gigabytes.
  // ResourceExhausted if memory is short.
  absl::Status Reserve(absl::Span<const Problem> problems);

  // Puts the tensors of a problem into the memory, and makes room if there is
  // too little. ResourceExhausted if memory is short.
  absl::Status Place(const Problem& problem);
  // Whether it is the problem that was placed last.
  bool Holds(const Problem& problem) const;
  SharedTensors tensors() const;

  // How often room was made: each time, the file is another.
  int version() const { return version_; }
  int file() const { return file_; }
  const TensorRoom& room() const { return room_; }
  int64_t bytes() const { return static_cast<int64_t>(size_); }

  // Remembers what the inputs hold.
  void Remember();
  // Aborted if the inputs are not what they were, or a red zone is damaged.
  absl::Status Check() const;

 private:
  absl::Status MakeRoom(const TensorRoom& room);
  void Release();
  char* begin(int part) const;
  TensorLayout layout() const { return TensorLayout(room_, problem_); }

  TensorRoom room_ = {};
  Problem problem_ = {};
  int version_ = 0;
  int file_ = -1;
  char* data_ = nullptr;
  size_t size_ = 0;
  std::array<uint64_t, 2> fingerprints_ = {};
};

// The side of the kernel's process.
class GuardedTensors {
 public:
  // Maps the file, which stays open, in place of what was mapped before. A
  // problem must be placed then.
  absl::Status Map(const TensorRoom& room, int file);
  absl::Status Place(const Problem& problem);

  float* x() const { return tensors_[0]; }
  float* k() const { return tensors_[1]; }
  float* y() const { return tensors_[2]; }

  // Which tensor an address is near to that lies in none: its number, and the
  // distance in bytes from its end (>= 0) or its begin (< 0). False if it is
  // not near to any. Can be called in a signal handler.
  bool Near(const void* address, int* tensor, int64_t* distance) const;

 private:
  TensorRoom room_ = {};
  std::array<float*, 3> tensors_ = {};
  std::array<size_t, 3> bytes_ = {};
  char* data_ = nullptr;
  size_t size_ = 0;
};

// "4 bytes behind y", for a distance as Near has it.
std::string DescribePlace(const char* tensor, int64_t distance);

}  // namespace convlab

#endif  // KERNELS_JUDGE_PROCESS_SHARED_TENSORS_H_
