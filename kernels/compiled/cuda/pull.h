// A copy to the device that begins before the host has written what is copied.
#ifndef KERNELS_COMPILED_CUDA_PULL_H_
#define KERNELS_COMPILED_CUDA_PULL_H_

#include <cstdint>

#include "kernels/cuda/error.h"

namespace convlab::cuda {

// Words of two neighbouring parts are so many apart: the GPU reads a line of
// the host's memory for one reader after the other, a microsecond each.
constexpr int kPullWordStride = 32;

struct Pull {
  const void* from;  // pinned, at a multiple of 16 bytes, as `to` is
  void* to;
  int64_t bytes, part_bytes;  // in all, and of each part but the last
  // Pinned, a word for each part, kPullWordStride apart: not 0 once the host
  // has written the part.
  const uint32_t* there;
  // Pinned; set to 1 if a part did not come for so long that it seems not to
  // come at all. What was copied is then of no use.
  uint32_t* missed;

  int64_t parts() const { return (bytes + part_bytes - 1) / part_bytes; }
};

// Queues the copy. It waits for a part for some milliseconds at most, because
// the host may be waiting for the kernel's end: under a profiler it does.
Error LaunchPull(const Pull& pull, cudaStream_t stream);

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_PULL_H_
