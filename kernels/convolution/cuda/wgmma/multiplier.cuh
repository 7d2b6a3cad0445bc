// The multipliers of WgmmaKernel: warpgroups that compute tiles of outputs from
// converted slabs, and leave them in a stage or, where there is none, store
// them.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_MULTIPLIER_CUH_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_MULTIPLIER_CUH_

#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/wgmma/block.cuh"
#include "kernels/convolution/cuda/wgmma/filters.cuh"
#include "kernels/convolution/cuda/wgmma/plan.h"
#include "kernels/convolution/cuda/wgmma/tile_product.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

// One thread of a warpgroup. With t = lane % 4 it holds sums of two of its
// warp's 16 units, which lie 8 apart, and of each 8 columns of a product the
// two from 2 * t on. These are filters 2 * t and the next of each 8; or, with
// two columns of a unit, filters 2 * (t / 2) and the next of each 4, for the
// unit's column t % 2.
template <int kShape>
class Multiplier {
 public:
  __device__ __forceinline__ Multiplier(const Block<kShape>& block,
                                        const uint4* arranged,
                                        const ScaledFilter* scaled_filters,
                                        AllFilters* all_filters,
                                        const DoubtfulTiles& doubtful)
      : block_(block),
        plan_(block.plan),
        warpgroup_(block.warp / 4),
        t_(threadIdx.x % 4),
        unit_(UnitOfLane()),
        all_filters_(all_filters),
        doubtful_(doubtful),
        filters_address_(SharedAddress(block.filters)),
        ring_(block.plan.slab_buffers, block.slab_barriers),
        stage_ring_(block.plan.stages, block.stage_barriers) {
    CopyFilters(block, arranged, scaled_filters, /*bias=*/nullptr, all_filters);
  }

  __device__ __forceinline__ void Run() {
    // With slabs of its own a warpgroup leaves out those of the others.
    constexpr int kSkipped = C::kOwnSlabs ? C::kMultipliers - 1 : 0;
    int index = blockIdx.x;
    if constexpr (C::kOwnSlabs) {
      index += warpgroup_ * gridDim.x;
      ring_.Advance(warpgroup_), stage_ring_.Advance(warpgroup_);
    }
    for (; index < block_.slab_count; index += gridDim.x * (1 + kSkipped),
                                      ring_.Advance(1 + kSkipped),
                                      stage_ring_.Advance(kSkipped)) {
      const Slab slab = block_.SlabAt(index);
      slab_address_ = SharedAddress(block_.SlabBuffer(ring_.buffer));
      WaitFor(block_.full + 8 * ring_.barrier, ring_.parity);
      const uint2 scale =
          LoadShared2(SharedAddress(&block_.slab_scales[ring_.buffer]));
      // All lanes load both side by side, so that products wait for them once;
      // without a stage there are no registers for it.
      AllFilters all_filters = {};
      if constexpr (!C::kDirect) {
        const uint2 certain = LoadShared2(SharedAddress(&all_filters_->least));
        all_filters.least = static_cast<int>(certain.x);
        all_filters.most = static_cast<int>(certain.y);
      }
      exponent_ = static_cast<int>(scale.x);
      const bool lossy = scale.y != 0;
      // One of the slab's multipliers lists it.
      if (threadIdx.x == (C::kOwnSlabs ? 128 * warpgroup_ : 0) &&
          (lossy ||
           (C::kDirect ? *all_filters_ : all_filters).Doubt(exponent_))) {
        doubtful_.Add({index, 0, plan_.M, exponent_, lossy});
      }
      slab_held_ = true;
      for (int group = 0; group < plan_.groups;
           group += plan_.phase_groups, stage_ring_.Advance()) {
        MultiplyPhase(slab, group);
      }
      if (slab_held_) Arrive(block_.empty + 8 * ring_.barrier);
    }
  }

 private:
  using C = WgmmaConstants<kShape>;
  using Product = TileProduct<kShape>;
  using Sums = typename Product::Sums;
  static_assert(C::kPool == 0);
  static_assert(!C::kDirect || C::kOwnSlabs,
                "a warpgroup that computes a slab's last tile frees the slab");

  // Those outputs of a slab that share a stage.
  struct Phase {
    int first_group;
    int m0;        // its first filter
    int target;    // WordInLine of its first output
    float* stage;  // if there are any
  };
  // A tile, and the first of the thread's filters, counted from the phase's
  // first.
  struct Tile {
    int group, index, first_filter;
  };
  // Where a unit stands in its slab: a band, and its first column.
  struct Unit {
    int band, column;
    bool exists;
  };

  // The thread's first unit of its warp's 16. Eight bytes of each lane are
  // loaded by 16 lanes at a time, 32 bytes of four units. If units lie 48 bytes
  // apart, or 16 more than another multiple of 64, those of neighbours share
  // banks, and those of every other unit do not.
  __device__ __forceinline__ int UnitOfLane() const {
    const int g = threadIdx.x % 32 / 4;
    const int words = C::kShifts * plan_.pixel_halves / 2;
    return C::kWide && words % 8 == 4 && words > 8 ? g % 4 * 2 + g / 4 : g;
  }

  // Computes this warpgroup's tiles of the phase that begins with
  // `first_group`.
  __device__ __forceinline__ void MultiplyPhase(const Slab& slab,
                                                int first_group) {
    const int end = min(first_group + plan_.phase_groups, plan_.groups);
    const int tiles = CeilDivide(slab.units, kWgmmaUnits);
    Phase phase;
    phase.first_group = first_group;
    phase.m0 = first_group * C::kGroupFilters;
    phase.target = slab.OutputInLine(plan_, WordInLine(block_.y), phase.m0);
    phase.stage = block_.stages + stage_ring_.buffer * plan_.stage_words;
    stage_held_ = false;
    for (int group = first_group; group < end; ++group) {
      for (int tile = 0; tile < tiles; ++tile) {
        if constexpr (!C::kOwnSlabs) {
          const bool mine = turn_ == warpgroup_;
          turn_ = turn_ + 1 == C::kMultipliers ? 0 : turn_ + 1;
          if (!mine) continue;
        }
        MultiplyTile(slab, phase, group, tile,
                     group + 1 == plan_.groups && tile + 1 == tiles);
      }
    }
    // A warpgroup without a tile finishes its part of the phase, too.
    if constexpr (!C::kDirect) {
      if (!stage_held_) WaitForStage(/*to_fill=*/false);
      FenceAsyncProxy();
      Arrive(block_.staged + 8 * stage_ring_.barrier);
    }
  }

  // Every thread arrives at `staged` once a turn, so it waits until the stage's
  // turn before is complete. A thread that fills the stage waits until that
  // turn was stored, too: then `stored` is at most one phase behind, since the
  // thread that filled it had seen the store before, and the parity suffices to
  // tell.
  __device__ __forceinline__ void WaitForStage(bool to_fill) const {
    const int barrier = 8 * stage_ring_.free_barrier();
    const int parity = stage_ring_.free_parity();
    if constexpr (!C::kOwnSlabs) WaitFor(block_.staged + barrier, parity);
    if (to_fill) WaitFor(block_.stored + barrier, parity);
  }
  // Waits for the phase's stage before the first output.
  __device__ __forceinline__ void HoldStage() {
    if (!C::kDirect && !stage_held_) {
      stage_held_ = true;
      WaitForStage(/*to_fill=*/true);
    }
  }

  __device__ __forceinline__ void MultiplyTile(const Slab& slab,
                                               const Phase& phase, int group,
                                               int index, bool last) {
    const Tile tile = {
        group, index,
        (group - phase.first_group) * C::kGroupFilters + 2 * (t_ / C::kShifts)};
    uint32_t in[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const Unit unit = UnitOf(slab, tile, e);
      in[e] = slab_address_ + 4 * (unit.band * C::kRows * plan_.pitch +
                                   unit.column * (plan_.pixel_halves / 2) +
                                   (C::kWide ? 2 * t_ : t_));
    }
    uint32_t filters = __shfl_sync(
        0xffffffff, filters_address_ + group * C::kParts * plan_.group_bytes,
        0);
    Product product(plan_, in, filters);
    Sums sum;
    if constexpr (C::kParts == 1) {
      product.Run(plan_.steps, sum);
    } else {
      // Where weights have one sign, sums may grow with every product, and what
      // is cut off of them adds up.
      Sums step_sum;
      product.RunStepSums(plan_.steps, all_filters_->one_signed, step_sum, sum);
    }
    // The slab is free before the outputs are stored, which takes a while.
    if constexpr (C::kDirect) {
      if (last) {
        slab_held_ = false;
        Arrive(block_.empty + 8 * ring_.barrier);
      }
    }
    HoldStage();
    Store(slab, phase, tile, sum);
  }

  // The thread's first or second unit. Beyond the slab's last unit it is that
  // one: it is computed again, but not stored.
  __device__ __forceinline__ Unit UnitOf(const Slab& slab, const Tile& tile,
                                         int e) const {
    Unit unit;
    const int index =
        tile.index * kWgmmaUnits + block_.warp % 4 * 16 + unit_ + 8 * e;
    const int near = min(index, slab.units - 1) + slab.units_before;
    unit.band = Divide(near, plan_.units_magic);
    unit.column = (near - unit.band * plan_.band_units) * C::kShifts;
    unit.exists = index < slab.units;
    return unit;
  }
  // Stores the sums, scaled back.
  __device__ __forceinline__ void Store(const Slab& slab, const Phase& phase,
                                        Tile tile, const Sums& sums) const {
    // Places are computed again here rather than kept in registers meanwhile.
    asm volatile("" : "+r"(tile.index), "+r"(tile.first_filter));
    float* const out =
        C::kDirect ? slab.Output(plan_, block_.y, phase.m0) : phase.stage;
    if ((tile.group + 1) * C::kGroupFilters <= plan_.M) {
      StoreSums<true>(slab, phase, tile, out, sums);
    } else {
      StoreSums<false>(slab, phase, tile, out, sums);
    }
  }
  // With kWhole every filter of the group exists.
  template <bool kWhole>
  __device__ __forceinline__ void StoreSums(const Slab& slab,
                                            const Phase& phase,
                                            const Tile& tile, float* out,
                                            const Sums& sums) const {
    constexpr int kFilters = 2 * C::kOctets * C::kShifts;
    float scale[kFilters];
    const uint32_t exponents =
        SharedAddress(block_.filter_exponents + phase.m0 + tile.first_filter);
#pragma unroll
    for (int i = 0; i < kFilters; i += 2) {
      const uint2 pair = LoadShared2(exponents + 4 * FilterOfThread<kShape>(i));
      scale[i] = ScaleBack(exponent_, pair.x);
      scale[i + 1] = ScaleBack(exponent_, pair.y);
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const Unit unit = UnitOf(slab, tile, e);
      const int column = unit.column + t_ % C::kShifts;
      const int rows_left = unit.exists && column < plan_.W_out
                                ? slab.rows - unit.band * C::kRows
                                : 0;
#pragma unroll
      for (int i = 0; i < kFilters; ++i) {
        const int m = tile.first_filter + FilterOfThread<kShape>(i);
        const int rows = kWhole || phase.m0 + m < plan_.M ? rows_left : 0;
        float* to =
            out +
            static_cast<uint32_t>(
                (C::kDirect ? static_cast<uint32_t>(m) * block_.OutputArea()
                            : StageOffset(plan_, phase.target, m)) +
                unit.band * C::kRows * plan_.W_out + column);
#pragma unroll
        for (int row = 0; row < C::kRows; ++row, to += plan_.W_out) {
          const int at =
              (row % C::kVectorRows * C::kShifts * C::kOctets + i / 2) * 4 +
              e * 2 + i % 2;
          const float sum = sums[row / C::kVectorRows][at] * scale[i];
          if constexpr (C::kDirect) {
            StoreIfBelow(row, rows, to, sum);
          } else {
            StoreSharedIfBelow(row, rows, SharedAddress(to), sum);
          }
        }
      }
    }
  }

  const Block<kShape>& block_;
  const WgmmaPlan& plan_;
  const int warpgroup_, t_;
  const int unit_;                 // UnitOfLane
  AllFilters* const all_filters_;  // in shared memory
  const DoubtfulTiles& doubtful_;
  const uint32_t filters_address_;
  WgmmaRing ring_, stage_ring_;
  // The warpgroup that computes the next tile, where all share each slab.
  int turn_ = 0;
  // The current slab: its buffer, its exponent, and whether this thread has yet
  // to arrive at `empty`.
  uint32_t slab_address_;
  int exponent_;
  bool slab_held_;
  bool stage_held_;  // whether this thread may fill the phase's stage
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_MULTIPLIER_CUH_
