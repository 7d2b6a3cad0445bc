// Copying what the GPU reads next across PCIe.
#ifndef KERNELS_CUDA_COPY_PAST_CACHES_H_
#define KERNELS_CUDA_COPY_PAST_CACHES_H_

#include <cstdint>

namespace convlab::cuda {

// Copies `bytes` bytes, as std::memcpy does, but 16 KB and more by stores that
// leave no whole line in the CPU's caches, where the processor has such: the
// GPU waits longer for a line that a cache has changed than for one from
// memory. A few lines come as soon from a cache, without the wait for these
// stores.
void CopyPastCaches(const void* from, int64_t bytes, void* to);

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_COPY_PAST_CACHES_H_
