// The writer of WgmmaKernel: one warp that stores the stages to device memory.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_WRITER_CUH_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_WRITER_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/wgmma/block.cuh"
#include "kernels/convolution/cuda/wgmma/plan.h"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

// Starts the copies of a phase's `filters` filters from `stage` to `out`. The
// copy engine takes whole vectors of 16 bytes; lanes store what stands before
// the first and after the last.
__device__ __forceinline__ void StoreStage(const WgmmaPlan& plan,
                                           const Slab& slab, int filters,
                                           int out_area, int lane,
                                           const float* stage, float* out) {
  const int target = WordInLine(out);
  const int pieces = plan.merged ? 1 : filters;
  const int count = plan.merged ? filters * out_area : slab.rows * plan.W_out;
  for (int m = lane; m < pieces; m += 32) {
    float* const to = out + int64_t{m} * out_area;
    const float* const from = stage + StageOffset(plan, target, m);
    const int head = min(-WordInLine(to) & 3, count);
    const int body = (count - head) & ~3;
    for (int i = 0; i < head; ++i) to[i] = from[i];
    if (body > 0) BulkStore(to + head, from + head, body * 4);
    for (int i = head + body; i < count; ++i) to[i] = from[i];
  }
}

template <int kShape>
__device__ __forceinline__ void RunWriter(const Block<kShape>& block) {
  using C = WgmmaConstants<kShape>;
  const WgmmaPlan& plan = block.plan;
  WgmmaRing ring(plan.stages, block.stage_barriers);
  for (int index = blockIdx.x; index < block.slab_count; index += gridDim.x) {
    const Slab slab = block.SlabAt(index);
    for (int group = 0; group < plan.groups;
         group += plan.phase_groups, ring.Advance()) {
      const int m0 = group * C::kGroupFilters;
      const int filters =
          min(plan.phase_groups * C::kGroupFilters, plan.M - m0);
      float* const out = slab.Output(plan, block.y, m0);
      const float* const stage = block.stages + ring.buffer * plan.stage_words;
      WaitFor(block.staged + 8 * ring.barrier, ring.parity);
      StoreStage(plan, slab, filters, block.OutputArea(), block.lane, stage,
                 out);
      CommitBulkStores();
      WaitForBulkReads();
      // Each lane has read parts of the stage.
      Arrive(block.stored + 8 * ring.barrier);
    }
  }
  WaitForBulkStores();
  __syncwarp();
  if (block.lane == 0) Arrive(block.written);
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_WRITER_CUH_
