// Instructions that CUDA C++ does not offer, for the kernels whose operands are
// scaled halves. Needs compute capability 8.0.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_PTX_CUH_
#define KERNELS_CONVOLUTION_CUDA_LIB_PTX_CUH_

#include <cstdint>

namespace convlab::cuda {

// c += a * b on the tensor cores: 16 x 16 halves by 16 x 8 halves, float32
// sums. Which lane holds what is in implicit/tensor_core.cuh.
__device__ __forceinline__ void MultiplyAdd(const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1, float (&c)[4]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// The same with a depth of 8: two words of a, and one of b.
__device__ __forceinline__ void MultiplyAdd8(uint32_t a0, uint32_t a1,
                                             uint32_t b, float (&c)[4]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(b));
#endif
}

// Adds sums of MultiplyAdd, which cuts off bits where it adds, to others by
// ordinary additions.
template <int kS, int kNT>
__device__ __forceinline__ void AddSums(const float (&part)[kS][kNT][4],
                                        float (&sum)[kS][kNT][4]) {
#pragma unroll
  for (int j = 0; j < kS; ++j) {
#pragma unroll
    for (int n = 0; n < kNT; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[j][n][i] += part[j][n][i];
    }
  }
}

// A barrier among `threads` threads of the block, all of which use the same id.
// Id 0 belongs to __syncthreads.
__device__ __forceinline__ void SyncGroup(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// The address of a pointer to shared memory, for the loads below.
__device__ __forceinline__ uint32_t SharedAddress(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Loads from shared memory, of 4, 8 and 16 bytes. They stay in the order in
// which they are written, and their offset is part of the instruction.
template <int kOffset>
__device__ __forceinline__ uint32_t LoadShared(uint32_t address) {
  uint32_t v;
  asm volatile("ld.shared.b32 %0, [%1+%2];"
               : "=r"(v)
               : "r"(address), "n"(kOffset));
  return v;
}
__device__ __forceinline__ uint2 LoadShared2(uint32_t address) {
  uint2 v;
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "r"(address));
  return v;
}
__device__ __forceinline__ uint4 LoadShared4(uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address));
  return v;
}

// Stores to shared memory, of 4 and 8 bytes.
__device__ __forceinline__ void StoreShared(uint32_t address, float v) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void StoreShared2(uint32_t address, float a,
                                             float b) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(a), "f"(b)
               : "memory");
}

// Stores v if i < end, without a branch, at whose end lanes would wait for each
// other.
__device__ __forceinline__ void StoreIfBelow(int i, int end, float* p,
                                             float v) {
  asm volatile(
      "{ .reg .pred below; setp.lt.s32 below, %2, %3; "
      "@below st.global.f32 [%0], %1; }" ::"l"(p),
      "f"(v), "r"(i), "r"(end)
      : "memory");
}

// *p, or p[0] and p[1], if i < end, otherwise zeros. No thread may write them
// during the kernel. The compiler makes a branch of `i < end ? *p : 0`, at the
// end of which a lane waits for what it loaded.
__device__ __forceinline__ float LoadIfBelow(int i, int end, const float* p) {
  float v;
  asm volatile(
      "{ .reg .pred below; setp.lt.s32 below, %2, %3; mov.b32 %0, 0; "
      "@below ld.global.nc.f32 %0, [%1]; }"
      : "=&f"(v)
      : "l"(p), "r"(i), "r"(end));
  return v;
}
__device__ __forceinline__ float2 LoadPairIfBelow(int i, int end,
                                                  const float* p) {
  float2 v;
  asm volatile(
      "{ .reg .pred below; setp.lt.s32 below, %3, %4; mov.b32 %0, 0; "
      "mov.b32 %1, 0; @below ld.global.nc.v2.f32 {%0, %1}, [%2]; }"
      : "=&f"(v.x), "=&f"(v.y)
      : "l"(p), "r"(i), "r"(end));
  return v;
}

// Starts to bring the line that holds *p to the L2 cache.
__device__ __forceinline__ void PrefetchToL2(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

// For kernels of a stream that overlap (LaunchOverlapping in launch.h): the
// earlier one lets the next start, and the next one waits until everything that
// the earlier one wrote is visible.
__device__ __forceinline__ void LetNextKernelStart() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ __forceinline__ void WaitForKernelBefore() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#if __CUDA_ARCH__ >= 900

// Stores from shared memory by the copy engine of compute capability 9.0. In
// this order, a thread makes what was written to shared memory visible to the
// engine, starts copies (addresses and sizes are multiples of 16), closes the
// group of its copies, and waits until they have read their source, or have
// ended.
__device__ __forceinline__ void FenceAsyncProxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void BulkStore(float* to, const float* from,
                                          int bytes) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
      "r"(SharedAddress(from)), "r"(bytes)
      : "memory");
}
__device__ __forceinline__ void CommitBulkStores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ __forceinline__ void WaitForBulkReads() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
__device__ __forceinline__ void WaitForBulkStores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_PTX_CUH_
