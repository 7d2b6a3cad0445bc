// What kind of GPU each device of the CUDA runtime for machines without one
// (fake_cuda.cc) is, and which launches such a GPU takes.
#ifndef TOOLS_FAULTS_FAKE_GPUS_H_
#define TOOLS_FAULTS_FAKE_GPUS_H_

#include <cuda_runtime_api.h>

#include <cstddef>

namespace convlab::fake {

struct Gpu {
  int capability;  // 90 for 9.0
  int multiprocessors;
  int shared_per_multiprocessor, shared_per_block;  // bytes
  int threads_per_multiprocessor;
  int clock_khz, memory_khz, bus_bits;
};
inline constexpr Gpu kH200 = {90,   132,     233472,  232448,
                              2048, 1980000, 3201000, 6016};
inline constexpr Gpu kH100 = {90,   132,     233472,  232448,
                              2048, 1980000, 2619000, 5120};
inline constexpr Gpu kA100 = {80,   108,     167936,  166912,
                              2048, 1410000, 1215000, 5120};
inline constexpr Gpu kRtx3060 = {86,   28,      102400,  101376,
                                 1536, 1777000, 7501000, 192};

// Every device is an H200 unless this has said otherwise, before its first use.
void SetGpu(int device, const Gpu& gpu);
const Gpu& GpuOf(int device);

int Attribute(cudaDeviceAttr attribute, int device);

// Blocks of a kernel of 64 registers that a multiprocessor of the current
// device has places for.
int ResidentBlocks(int threads, size_t dynamic_shared);

// What all kernels are said to have, although not all have it: bytes of shared
// memory besides the dynamic ones.
inline constexpr int kStaticShared = 64;

// Of a block of the function: false if it is more than the current device has.
bool AllowShared(const void* function, int bytes);
// Whether the current device takes a launch: its grid, its threads, and the
// shared memory that was allowed.
bool TakesLaunch(const void* function, dim3 grid, dim3 block, size_t shared);

}  // namespace convlab::fake

#endif  // TOOLS_FAULTS_FAKE_GPUS_H_
