// The memory in which the judge hands tensors to the kernel's process. Each
// tensor ends where a page ends, up to its alignment; what remains of its pages
// is a red zone with a known pattern. In the kernel's process, a page that
// cannot be touched follows and precedes each.
#ifndef KERNELS_JUDGE_PROCESS_SHARED_TENSORS_H_
#define KERNELS_JUDGE_PROCESS_SHARED_TENSORS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/convolution/problem.h"
#include "kernels/judge/process/process.h"

namespace convlab {

// Where a problem's tensors x, k and y lie in the shared file, in bytes.
struct TensorLayout {
  struct Part {
    size_t offset = 0;  // of its pages
    size_t size = 0;    // of its pages
    size_t begin = 0;   // of the tensor, from `offset`
    size_t bytes = 0;   // of the tensor
  };
  explicit TensorLayout(const Problem& problem);
  std::array<Part, 3> parts;
  size_t size = 0;
};

constexpr std::array<const char*, 3> kTensorNames = {"x", "k", "y"};

// The judge's side.
class SharedMemory {
 public:
  // ResourceExhausted if memory is short.
  static absl::StatusOr<SharedMemory> Create(const Problem& problem);
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  bool Holds(const Problem& problem) const;
  int file() const { return file_; }
  int64_t bytes() const { return static_cast<int64_t>(size_); }
  SharedTensors tensors() const;

  // Remembers what the inputs hold; to be called while the kernel's process is
  // stopped.
  void Remember();
  // Aborted if the inputs are not what they were, or a red zone is damaged.
  absl::Status Check() const;

 private:
  char* begin(int part) const;

  Problem problem_;
  int file_ = -1;
  char* data_ = nullptr;
  size_t size_ = 0;
  std::array<uint64_t, 2> fingerprints_ = {};
};

// The side of the kernel's process.
class GuardedTensors {
 public:
  // Maps the file, which stays open, in place of what was mapped before.
  absl::Status Map(const Problem& problem, int file);

  float* x() const { return tensors_[0]; }
  float* k() const { return tensors_[1]; }
  float* y() const { return tensors_[2]; }

  // Which tensor an address is near to that lies in none: its number, and the
  // distance in bytes from its end (>= 0) or its begin (< 0). False if it is
  // not near to any. Can be called in a signal handler.
  bool Near(const void* address, int* tensor, int64_t* distance) const;

 private:
  std::array<float*, 3> tensors_ = {};
  std::array<size_t, 3> bytes_ = {};
  char* data_ = nullptr;
  size_t size_ = 0;
};

// "4 bytes behind y", for a distance as Near has it.
std::string DescribePlace(const char* tensor, int64_t distance);

}  // namespace convlab

#endif  // KERNELS_JUDGE_PROCESS_SHARED_TENSORS_H_
