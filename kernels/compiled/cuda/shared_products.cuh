// Products of warpgroups whose rows are in shared memory, as their columns are
// (wgmma_ptx.cuh).
#ifndef KERNELS_COMPILED_CUDA_SHARED_PRODUCTS_CUH_
#define KERNELS_COMPILED_CUDA_SHARED_PRODUCTS_CUH_

#include <cstdint>

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

// Starts sum += rows * columns by a warpgroup, or sum = rows * columns if
// `adds` is 0: 64 x 16 halves by 16 x N halves, where N is twice the size of
// `sum`. Of the rows, each 8 stand in shared memory as each 8 columns do
// (ColumnsAt). The sum may not be touched before WaitForProducts.
__device__ __forceinline__ void StartProduct(float (&sum)[16], uint64_t rows,
                                             uint64_t columns, int adds = 1) {
  asm volatile(
      "{ .reg .pred add; setp.ne.b32 add, %18, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
      "%12, %13, %14, %15}, "
      "%16, %17, add, 1, 1, 0, 0; }"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]),
        "+f"(sum[5]), "+f"(sum[6]), "+f"(sum[7]), "+f"(sum[8]), "+f"(sum[9]),
        "+f"(sum[10]), "+f"(sum[11]), "+f"(sum[12]), "+f"(sum[13]),
        "+f"(sum[14]), "+f"(sum[15])
      : "l"(rows), "l"(columns), "r"(adds));
}
__device__ __forceinline__ void StartProduct(float (&sum)[20], uint64_t rows,
                                             uint64_t columns, int adds = 1) {
  asm volatile(
      "{ .reg .pred add; setp.ne.b32 add, %22, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n40k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
      "%12, %13, %14, %15, %16, %17, %18, %19}, "
      "%20, %21, add, 1, 1, 0, 0; }"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]),
        "+f"(sum[5]), "+f"(sum[6]), "+f"(sum[7]), "+f"(sum[8]), "+f"(sum[9]),
        "+f"(sum[10]), "+f"(sum[11]), "+f"(sum[12]), "+f"(sum[13]),
        "+f"(sum[14]), "+f"(sum[15]), "+f"(sum[16]), "+f"(sum[17]),
        "+f"(sum[18]), "+f"(sum[19])
      : "l"(rows), "l"(columns), "r"(adds));
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_SHARED_PRODUCTS_CUH_
