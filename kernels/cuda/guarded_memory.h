// Device memory for tests, beside which nothing is mapped: what a kernel reads
// or writes there ends with an error, although the value be unused.
#ifndef KERNELS_CUDA_GUARDED_MEMORY_H_
#define KERNELS_CUDA_GUARDED_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace convlab::cuda {

struct GuardedMemory {
  char* begin = nullptr;
  int64_t bytes = 0;
};

// Maps at least `bytes` on the current device; they stay mapped as long as the
// process lives. Unavailable, with the reason, where there is no GPU or its
// driver cannot map memory.
absl::StatusOr<GuardedMemory> MapGuardedMemory(int64_t bytes);

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_GUARDED_MEMORY_H_
