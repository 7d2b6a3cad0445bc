// Where the converters of WgmmaKernel load pixels from.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_PIXELS_CUH_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_PIXELS_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/ptx.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

// Where a channel's pixels come from: device memory or, if the image was
// brought ahead, shared memory. They are two types so that the compiler knows
// the kind of memory, addresses of shared memory take one register, and offsets
// are part of the instruction.
struct GlobalPixels {
  const float* p;
  __device__ __forceinline__ float Load(int i) const { return p[i]; }
  __device__ __forceinline__ void Advance(int64_t floats) { p += floats; }
  // The pixel kOffset after the current one if i < end, otherwise 0. Without a
  // value for the other case the register would be occupied from the kernel's
  // beginning on.
  template <int kOffset>
  __device__ __forceinline__ float LoadIfBelow(int i, int end) const {
    float v;
    asm volatile(
        "{ .reg .pred below; setp.lt.s32 below, %2, %3; mov.b32 %0, 0; "
        "@below ld.global.f32 %0, [%1+%4]; }"
        : "=&f"(v)
        : "l"(p), "r"(i), "r"(end), "n"(kOffset * 4));
    return v;
  }
};
struct SharedPixels {
  uint32_t address;
  __device__ __forceinline__ float Load(int i) const {
    return __uint_as_float(LoadShared<0>(address + 4 * i));
  }
  __device__ __forceinline__ void Advance(int64_t floats) {
    address += static_cast<uint32_t>(4 * floats);
  }
  template <int kOffset>
  __device__ __forceinline__ float LoadIfBelow(int i, int end) const {
    float v;
    asm volatile(
        "{ .reg .pred below; setp.lt.s32 below, %2, %3; mov.b32 %0, 0; "
        "@below ld.shared.f32 %0, [%1+%4]; }"
        : "=&f"(v)
        : "r"(address), "r"(i), "r"(end), "n"(kOffset * 4));
    return v;
  }
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_PIXELS_CUH_
