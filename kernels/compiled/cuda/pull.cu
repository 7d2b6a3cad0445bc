// Brings bytes from pinned memory to the device, part by part, as the host
// writes them.
//
// Idea. The host starts the work first and copies then, so that its copy hides
// what it takes to start work on the GPU, and the way across PCIe hides behind
// the copy but for the last part.
#include "kernels/compiled/cuda/pull.h"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 1024;

__device__ __forceinline__ void WaitForPart(const Pull& pull, int64_t part) {
  // A copy takes microseconds, but the thread that makes it may lose its core.
  constexpr uint64_t kPatienceNs = 3000000;
  const auto now = [] {
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
  };
  const uint64_t begin = now();
  for (;;) {
    uint32_t there;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                 : "=r"(there)
                 : "l"(pull.there + kPullWordStride * part)
                 : "memory");
    if (there != 0) return;
    if (now() - begin > kPatienceNs) {
      *static_cast<volatile uint32_t*>(pull.missed) = 1;
      return;
    }
  }
}

// A block brings a part.
__global__ void __launch_bounds__(kThreads)
    PullKernel(const __grid_constant__ Pull pull) {
  const int64_t begin = blockIdx.x * pull.part_bytes;
  const int64_t end = min(begin + pull.part_bytes, pull.bytes);
  if (threadIdx.x == 0) WaitForPart(pull, blockIdx.x);
  __syncthreads();
  const auto* const from = static_cast<const char*>(pull.from);
  auto* const to = static_cast<char*>(pull.to);
  constexpr int64_t kVector = sizeof(uint4);
  const int64_t vectors_end = begin + (end - begin) / kVector * kVector;
  for (int64_t i = begin + threadIdx.x * kVector; i < vectors_end;
       i += kThreads * kVector) {
    *reinterpret_cast<uint4*>(to + i) =
        *reinterpret_cast<const uint4*>(from + i);
  }
  const int64_t last = vectors_end + threadIdx.x;
  if (last < end) to[last] = from[last];
}

}  // namespace

Error LaunchPull(const Pull& pull, cudaStream_t stream) {
  PullKernel<<<static_cast<unsigned>(pull.parts()), kThreads, 0, stream>>>(
      pull);
  return CheckLaunch("PullKernel");
}

}  // namespace convlab::cuda
