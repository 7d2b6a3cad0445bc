// The convolution by Hopper's products of warpgroups, of which tensor_wgmma and
// wgmma_fp16 are made; the chapter in tensor_wgmma.cu explains the idea.
//
// A persistent block per multiprocessor walks over the slabs of the batch. Its
// warps have three roles, which hand slabs and stages to each other through the
// barriers that Block lists:
//   warps 0 to 4 * kMultipliers - 1   Multiplier   slab -> stage, or
//                                     PoolingMultiplier, slab -> device memory
//   the next kConverterWarps          Converter    device memory -> slab
//   one more, if there are stages     RunWriter    stage -> device memory
// Multipliers list doubtful slabs and mend their outputs at the end (mend.cuh).
// Converters give registers to multipliers.
//
// An operand has one or two parts: two if it is split into high and low halves,
// which takes three products, or one, its values rounded to halves, which takes
// one.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_WGMMA_KERNEL_CUH_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_WGMMA_KERNEL_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/mend.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/wgmma/block.cuh"
#include "kernels/convolution/cuda/wgmma/converter.cuh"
#include "kernels/convolution/cuda/wgmma/multiplier.cuh"
#include "kernels/convolution/cuda/wgmma/plan.h"
#include "kernels/convolution/cuda/wgmma/pooling_multiplier.cuh"
#include "kernels/convolution/cuda/wgmma/writer.cuh"

namespace convlab::cuda {

template <int kShape, bool kPadded>
__global__ void __launch_bounds__(WgmmaConstants<kShape>::kThreads, 1)
    WgmmaKernel(const float* __restrict__ x, const uint4* arranged,
                const __grid_constant__ Mend mend, float* __restrict__ y,
                const __grid_constant__ WgmmaPlan plan) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  LetNextKernelStart();
  using C = WgmmaConstants<kShape>;
  extern __shared__ __align__(1024) uint4 shared[];
  __shared__ uint64_t barriers[5 * C::kMostBarriers + 1];
  __shared__ __align__(8) AllFilters all_filters;
  __shared__ SlabScale slab_scales[kWgmmaMostBuffers];
  __shared__ Seen slabs_seen[C::kConverterGroups][3];
  __shared__ int doubtful_count;

  const Block<kShape> block(plan, x, y, shared, barriers, slab_scales);
  block.Initialize();
  if (threadIdx.x == 0) {
    for (auto& turns : slabs_seen) {
      for (Seen& turn : turns) turn = Seen();
    }
    doubtful_count = 0;
  }
  FenceAsyncProxy();
  __syncthreads();

  if (block.warp >= C::kMultiplierWarps) {
    GiveRegisters<C::kConverterRegisters>();
    const int warp = block.warp - C::kMultiplierWarps;
    if (!C::kDirect && warp == C::kConverterWarps) {
      RunWriter(block);
      return;
    }
    const int group = warp / (C::kConverterWarps / C::kConverterGroups);
    if (group >= C::kConverterGroups) return;
    Converter<kShape, kPadded>(block, group, slabs_seen[group]).Run();
    return;
  }
  TakeRegisters<C::kMultiplierRegisters>();
  const DoubtfulTiles doubtful = {&doubtful_count, mend.tiles};
  if constexpr (C::kPool > 0) {
    PoolingMultiplier<kShape>(block, arranged, mend.filters, mend.plan.epilogue,
                              &all_filters, doubtful)
        .Run();
  } else {
    Multiplier<kShape>(block, arranged, mend.filters, &all_filters, doubtful)
        .Run();
  }
  constexpr int kBarrier = 1, kThreads = 32 * C::kMultiplierWarps;
  SyncGroup(kBarrier, kThreads);
  if (doubtful_count > 0) {
    if constexpr (!C::kDirect) WaitFor(block.written, 0);
    CallMendOutputs<kPadded>(kThreads, mend, x, y, doubtful,
                             reinterpret_cast<LossyInputs*>(shared));
  }
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_WGMMA_KERNEL_CUH_
