// Copies from device memory to shared memory that go past the registers and run
// while the thread does something else. Needs compute capability 8.0.
#ifndef KERNELS_CUDA_ASYNC_COPY_CUH_
#define KERNELS_CUDA_ASYNC_COPY_CUH_

#include <cstdint>

namespace convlab::cuda {

// Starts to copy kBytes (4, 8 or 16) bytes, to which both addresses are
// aligned, or to fill them with zeros if not `exists`; `from` is not read then.
template <int kBytes>
__device__ __forceinline__ void StartCopy(void* to, const void* from,
                                          bool exists) {
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  const int read = exists ? kBytes : 0;
  if (kBytes == 16) {
    // Past the first-level cache: a tile is read once.
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address),
                 "l"(from), "r"(read)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address),
                 "l"(from), "n"(kBytes), "r"(read)
                 : "memory");
  }
#endif
}

// Makes a group of the thread's copies since the last call.
__device__ __forceinline__ void CommitCopies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most kGroups of the thread's groups still run. What they wrote
// is visible to the thread, and to others behind a barrier.
template <int kGroups>
__device__ __forceinline__ void WaitForCopies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

// Arrives at a barrier in shared memory when the thread's copies so far are
// done. The barrier counts the thread.
__device__ __forceinline__ void ArriveWhenCopied(uint32_t barrier) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier)
               : "memory");
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_ASYNC_COPY_CUH_
