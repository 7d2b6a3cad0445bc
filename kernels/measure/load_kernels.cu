// Kernels that each load one part of the GPU: memory, the float32 units, the
// tensor cores. Their rates are the ceilings of other kernels.
#include <cuda_fp16.h>

#include "kernels/measure/load_kernels.h"

namespace convlab::cuda {
namespace {

constexpr int kThreads = kSinkFloats;

__global__ void WaitKernel(long long nanoseconds) {
  long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    __nanosleep(1000);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

// Each thread writes sixteen bytes per step; neighbours write adjacent ones.
__global__ void FillKernel(float4* out, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += step) {
    out[i] = make_float4(1, 2, 3, 4);
  }
}

__global__ void CopyKernel(const float4* __restrict__ in,
                           float4* __restrict__ out, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  // Several loads are in flight at a time.
  constexpr int kUnroll = 4;
  for (; i + (kUnroll - 1) * step < count; i += kUnroll * step) {
    float4 values[kUnroll];
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) values[j] = in[i + j * step];
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) out[i + j * step] = values[j];
  }
  for (; i < count; i += step) out[i] = in[i];
}

// Independent sums, enough to hide the latency with few warps.
constexpr int kFmaSums = 16;
constexpr int kFmaSteps = 32;  // of each sum in a round

__global__ void __launch_bounds__(kThreads)
    FmaKernel(int rounds, float factor, float term, float* sink) {
  float sums[kFmaSums];
#pragma unroll
  for (int i = 0; i < kFmaSums; ++i) sums[i] = threadIdx.x + i;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int step = 0; step < kFmaSteps; ++step) {
#pragma unroll
      for (int i = 0; i < kFmaSums; ++i) {
        sums[i] = fmaf(sums[i], factor, term);
      }
    }
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kFmaSums; ++i) sum += sums[i];
  sink[threadIdx.x] = sum;
}

// A number in [-1, 1) that looks random. Operands of zero would take less power
// and allow a higher clock than real work does.
[[maybe_unused]] __device__ float Scrambled(uint32_t index) {
  index = (index ^ 61) ^ (index >> 16);
  index *= 9;
  index ^= index >> 4;
  index *= 0x27d4eb2d;
  index ^= index >> 15;
  return index * (2.0f / 4294967296.0f) - 1;
}

template <bool kTf32>
__device__ uint32_t ScrambledWord(uint32_t index) {
  if constexpr (kTf32) {
    // TF32 does not include the lowest 13 bits.
    return __float_as_uint(Scrambled(index)) & 0xffffe000u;
  }
  const __half2 pair =
      __floats2half2_rn(Scrambled(2 * index), Scrambled(2 * index + 1));
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// mma.sync: 16 x 8 sums of 8 (TF32) or 16 (FP16) products each.
constexpr int kMmaSums = 8;
constexpr int kMmaSteps = 8;

template <bool kTf32>
__global__ void __launch_bounds__(kThreads) MmaKernel(int rounds, float* sink) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t a[4], b[kMmaSums][2];
  float c[kMmaSums][4] = {};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    a[i] = ScrambledWord<kTf32>(threadIdx.x * 4 + i);
  }
#pragma unroll
  for (int i = 0; i < kMmaSums; ++i) {
    b[i][0] = ScrambledWord<kTf32>(1024 + threadIdx.x * 16 + 2 * i);
    b[i][1] = ScrambledWord<kTf32>(1024 + threadIdx.x * 16 + 2 * i + 1);
  }
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int step = 0; step < kMmaSteps; ++step) {
#pragma unroll
      for (int i = 0; i < kMmaSums; ++i) {
        if constexpr (kTf32) {
          asm volatile(
              "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
              "{%0, %1, %2, %3};"
              : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
              : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[i][0]),
                "r"(b[i][1]));
        } else {
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
              "{%0, %1, %2, %3};"
              : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
              : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[i][0]),
                "r"(b[i][1]));
        }
      }
    }
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kMmaSums; ++i)
    sum += c[i][0] + c[i][1] + c[i][2] + c[i][3];
  sink[threadIdx.x] = sum;
#endif
}

// wgmma: a warpgroup computes 64 x 128 sums of 8 (TF32) or 16 (FP16) products
// each, from operands in shared memory. Only code for sm_90a has it.
constexpr int kWgmmaRows = 64, kWgmmaColumns = 128;
constexpr int kWgmmaSteps = 8;
constexpr int kWgmmaWarpgroups = kThreads / 128;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr int kWgmmaRegisters = kWgmmaRows * kWgmmaColumns / 128;
// Bytes of a row of either operand, for both types.
constexpr int kWgmmaRowBytes = 32;

// Describes an operand to wgmma: core matrices of 8 rows x 16 bytes without
// swizzling, two along a row 128 bytes apart and two along the columns 256. See
// "Matrix Descriptor Format" in the PTX manual.
__device__ uint64_t OperandDescriptor(const void* shared) {
  const uint64_t address = __cvta_generic_to_shared(shared);
  return ((address & 0x3ffff) >> 4) | uint64_t{128 >> 4} << 16 |
         uint64_t{256 >> 4} << 32;
}

#define CONVLAB_EIGHT(i)                                                      \
  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), \
      "+f"(c[i + 5]), "+f"(c[i + 6]), "+f"(c[i + 7])
#define CONVLAB_SUMS                                                        \
  CONVLAB_EIGHT(0), CONVLAB_EIGHT(8), CONVLAB_EIGHT(16), CONVLAB_EIGHT(24), \
      CONVLAB_EIGHT(32), CONVLAB_EIGHT(40), CONVLAB_EIGHT(48),              \
      CONVLAB_EIGHT(56)
#define CONVLAB_SUM_NAMES                                              \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, " \
  "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, "  \
  "%28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, "  \
  "%41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, "  \
  "%54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

template <bool kTf32>
__device__ void Wgmma(float (&c)[kWgmmaRegisters], uint64_t a, uint64_t b) {
  // The predicate makes the product accumulate.
  if constexpr (kTf32) {
    asm volatile(
        "{ .reg .pred add; setp.eq.b32 add, 0, 0; "
        "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32."
        "tf32 " CONVLAB_SUM_NAMES ", %64, %65, add, 1, 1; }"
        : CONVLAB_SUMS
        : "l"(a), "l"(b));
  } else {
    asm volatile(
        "{ .reg .pred add; setp.eq.b32 add, 0, 0; "
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " CONVLAB_SUM_NAMES
        ", %64, %65, add, 1, 1, 0, 0; }"
        : CONVLAB_SUMS
        : "l"(a), "l"(b));
  }
}
#endif  // __CUDA_ARCH_FEAT_SM90_ALL

template <bool kTf32>
__global__ void __launch_bounds__(kThreads)
    WgmmaKernel(int rounds, float* sink) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kA = kWgmmaRows * kWgmmaRowBytes / 4;  // words
  constexpr int kB = kWgmmaColumns * kWgmmaRowBytes / 4;
  __shared__ alignas(128) uint32_t a_words[kWgmmaWarpgroups * kA];
  __shared__ alignas(128) uint32_t b_words[kB];
  for (int i = threadIdx.x; i < kWgmmaWarpgroups * kA; i += kThreads) {
    a_words[i] = ScrambledWord<kTf32>(i);
  }
  for (int i = threadIdx.x; i < kB; i += kThreads) {
    b_words[i] = ScrambledWord<kTf32>(kWgmmaWarpgroups * kA + i);
  }
  // wgmma reads shared memory through another proxy than the stores.
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const uint64_t a = OperandDescriptor(a_words + threadIdx.x / 128 * kA);
  const uint64_t b = OperandDescriptor(b_words);
  float c[kWgmmaRegisters] = {};
  for (int round = 0; round < rounds; ++round) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int step = 0; step < kWgmmaSteps; ++step) Wgmma<kTf32>(c, a, b);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kWgmmaRegisters; ++i) sum += c[i];
  sink[threadIdx.x] = sum;
#endif  // __CUDA_ARCH_FEAT_SM90_ALL
}

struct Device {
  int multiprocessors = 0;
  int capability = 0;
};

Error AskDevice(Device* device) {
  int major = 0, minor = 0;
  RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(
      &device->multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  RETURN_IF_CUDA_ERROR(
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  RETURN_IF_CUDA_ERROR(
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
  device->capability = 10 * major + minor;
  return {};
}

// As many blocks as the device runs at a time, so that none waits for another.
template <typename Kernel>
Error AskBlocks(Kernel kernel, int* blocks) {
  Device device;
  RETURN_IF_FAILED(AskDevice(&device));
  int resident = 0;
  RETURN_IF_CUDA_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &resident, kernel, kThreads, 0));
  *blocks = device.multiprocessors * resident;
  return {};
}

}  // namespace

Error LaunchWait(int microseconds) {
  WaitKernel<<<1, 1>>>(1000ll * microseconds);
  return CheckLaunch("WaitKernel");
}

Error LaunchFill(void* out, int64_t bytes) {
  int blocks = 0;
  RETURN_IF_FAILED(AskBlocks(FillKernel, &blocks));
  FillKernel<<<blocks, kThreads>>>(static_cast<float4*>(out), bytes / 16);
  return CheckLaunch("FillKernel");
}

Error LaunchCopy(const void* in, void* out, int64_t bytes) {
  int blocks = 0;
  RETURN_IF_FAILED(AskBlocks(CopyKernel, &blocks));
  CopyKernel<<<blocks, kThreads>>>(static_cast<const float4*>(in),
                                   static_cast<float4*>(out), bytes / 16);
  return CheckLaunch("CopyKernel");
}

Error LaunchFma(int rounds, float* sink, double* flops) {
  int blocks = 0;
  RETURN_IF_FAILED(AskBlocks(FmaKernel, &blocks));
  *flops = 2.0 * blocks * kThreads * kFmaSums * kFmaSteps * rounds;
  // Sums stay finite: they converge to 1.
  FmaKernel<<<blocks, kThreads>>>(rounds, 0.5f, 0.5f, sink);
  return CheckLaunch("FmaKernel");
}

Error LaunchMma(bool tf32, int rounds, float* sink, double* flops) {
  Device device;
  RETURN_IF_FAILED(AskDevice(&device));
  if (device.capability < 80) return {};
  const auto kernel = tf32 ? MmaKernel<true> : MmaKernel<false>;
  cudaFuncAttributes attributes;
  RETURN_IF_CUDA_ERROR(cudaFuncGetAttributes(&attributes, kernel));
  // Compiled by the driver from PTX of an older architecture it is empty.
  if (attributes.ptxVersion < 80) return {};
  int blocks = 0;
  RETURN_IF_FAILED(AskBlocks(kernel, &blocks));
  const int depth = tf32 ? 8 : 16;
  *flops = 2.0 * 16 * 8 * depth * blocks * (kThreads / 32) * kMmaSums *
           kMmaSteps * rounds;
  kernel<<<blocks, kThreads>>>(rounds, sink);
  return CheckLaunch("MmaKernel");
}

Error LaunchWgmma(bool tf32, int rounds, float* sink, double* flops) {
  Device device;
  RETURN_IF_FAILED(AskDevice(&device));
  const auto kernel = tf32 ? WgmmaKernel<true> : WgmmaKernel<false>;
  cudaFuncAttributes attributes;
  RETURN_IF_CUDA_ERROR(cudaFuncGetAttributes(&attributes, kernel));
  // Without the instructions the kernel is empty, and needs no shared memory.
  if (device.capability != 90 || attributes.sharedSizeBytes == 0) return {};
  int blocks = 0;
  RETURN_IF_FAILED(AskBlocks(kernel, &blocks));
  const int depth = tf32 ? 8 : 16;
  *flops = 2.0 * kWgmmaRows * kWgmmaColumns * depth * blocks *
           kWgmmaWarpgroups * kWgmmaSteps * rounds;
  kernel<<<blocks, kThreads>>>(rounds, sink);
  return CheckLaunch("WgmmaKernel");
}

}  // namespace convlab::cuda
