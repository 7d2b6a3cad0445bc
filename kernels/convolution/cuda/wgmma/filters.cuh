// The filters of WgmmaKernel in shared memory, and which of them a multiplier's
// thread has sums of.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_FILTERS_CUH_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_FILTERS_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/wgmma/block.cuh"
#include "kernels/convolution/cuda/wgmma/plan.h"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

// Copies the arranged filters and what is known of them to shared memory while
// the converters prepare the first slab. Called by all multipliers; a null bias
// is zeros.
template <int kShape>
__device__ __forceinline__ void CopyFilters(const Block<kShape>& block,
                                            const uint4* arranged,
                                            const ScaledFilter* scaled_filters,
                                            const float* bias,
                                            AllFilters* all_filters) {
  using C = WgmmaConstants<kShape>;
  constexpr int kThreads = 32 * C::kMultiplierWarps;
  const WgmmaPlan& plan = block.plan;
  WaitForKernelBefore();
  for (int i = threadIdx.x; i < block.filter_vectors; i += kThreads) {
    block.filters[i] = arranged[i];
  }
  for (int m = threadIdx.x; m < plan.groups * C::kGroupFilters; m += kThreads) {
    block.filter_exponents[m] = ExponentBits(scaled_filters[m].exponent);
    if constexpr (C::kPool > 0) {
      block.bias[m] = bias == nullptr || m >= plan.M ? 0 : bias[m];
    }
  }
  const auto of_all = AllFilters::Of(scaled_filters, plan.M);
  if (threadIdx.x == 0) *all_filters = of_all;
  FenceAsyncProxy();
  SyncGroup(1, kThreads);
}

// A thread has sums of 2 * octets * shifts filters: the distance of the i-th
// from the first.
template <int kShape>
__device__ __forceinline__ constexpr int FilterOfThread(int i) {
  return i / 2 * (8 / WgmmaConstants<kShape>::kShifts) + i % 2;
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_FILTERS_CUH_
