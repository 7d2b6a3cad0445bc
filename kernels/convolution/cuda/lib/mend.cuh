// Mends the outputs of kernels whose operands are scaled halves: those that may
// have lost more than float32 would are computed again by the definition.
// Needs compute capability 8.0.
//
// A block of the kernel lists its doubtful tiles: those with lossy inputs, or
// whose scales some filters' outputs do not go with. When its outputs are
// written, its warpgroups share these tiles; if the tiles are few, or the block
// has other threads than whole warpgroups, all threads mend one tile after the
// other. They find the lossy inputs, look at the outputs that those reach, and
// compute the ones that are too small to be certain (scaling.h). Outputs of
// filters with lossy weights are looked at all over the tile.
//
// So the kernel pays for one comparison of each tile, and on ordinary data
// there is little to look at.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_MEND_CUH_
#define KERNELS_CONVOLUTION_CUDA_LIB_MEND_CUH_

#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/mender.h"
#include "kernels/convolution/cuda/lib/mending.cuh"
#include "kernels/convolution/cuda/lib/output_tiles.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/scaling.h"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// The rows of a tile's inputs that are in memory, where zeros stand around the
// images and the tile is as wide as they are with them.
struct InsetRows {
  const float* first;  // the first input, of channel 0
  int area;            // from channel to channel
  int inputs;          // of a channel
  int row;             // of the first input, in the tile

  __device__ __forceinline__ InsetRows(const MendPlan& plan,
                                       const Mending<true>& tile) {
    const Inset& inset = plan.inset;
    const int top = tile.area.row - inset.top;
    const int begin = max(top, 0);
    const int end = min(top + tile.area.rows + plan.K - 1, inset.height);
    area = inset.height * inset.width;
    first =
        tile.x + tile.area.image * plan.C * area + int64_t{begin} * inset.width;
    inputs = max(end - begin, 0) * inset.width;
    row = begin - top;
  }
  // Where input i of a channel stands in the tile: row * W + column.
  __device__ __forceinline__ int Place(const MendPlan& plan, int i) const {
    const int h = i / plan.inset.width;
    return (row + h) * plan.W + plan.inset.left + i - h * plan.inset.width;
  }
};

// Finds the lossy inputs of a tile. They are read in runs, which are all its
// rows of a channel if it is as wide as the image, or single rows. A warp takes
// a piece of a run at a time.
template <bool kPadded>
__device__ __forceinline__ void FindLossy(const MendPlan& plan,
                                          const Mending<kPadded>& tile,
                                          LossyInputs* lossy) {
  constexpr int kLoads = 8, kPiece = 32 * kLoads;
  const bool whole = tile.area.columns == plan.tiles.width;
  const int input_rows = tile.area.rows + plan.K - 1;
  int length = whole ? input_rows * plan.W : tile.area.columns + plan.K - 1;
  if constexpr (kPadded) {
    if (whole) length = InsetRows(plan, tile).inputs;
  }
  // A lane's inputs of a run, from its input `first` on; `row` is the run's.
  const auto load = [&](int c, int row, int first, float(&v)[kLoads]) {
    if constexpr (kPadded) {
      if (whole) {
        const InsetRows rows(plan, tile);
        const float* const in = rows.first + int64_t{c} * rows.area + first;
#pragma unroll
        for (int j = 0; j < kLoads; ++j) {
          v[j] = LoadIfBelow(first + 32 * j, length, in + 32 * j);
        }
        return;
      }
    }
    const InputsFrom<kPadded> from = tile.Inputs(plan, row, first);
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      v[j] = from.LoadIfBelow(first + 32 * j, length, c, 0, 32 * j);
    }
  };
  const auto place_of = [&](int row, int i) {
    if constexpr (kPadded) {
      if (whole) return InsetRows(plan, tile).Place(plan, i);
    }
    return row * plan.W + i;
  };
  const int channel_runs = whole ? 1 : input_rows;
  const int pieces = CeilDivide(length, kPiece);
  const float scale = PowerOfTwo(tile.exponent);
  int kept = 0;
#pragma unroll 1
  for (int i = tile.thread / 32; i < plan.C * channel_runs * pieces;
       i += tile.threads / 32) {
    const int run = i / pieces;
    const int c = run / channel_runs, row = run - c * channel_runs;
    const int first = (i - run * pieces) * kPiece + tile.thread % 32;
    float v[kLoads];
    load(c, row, first, v);
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      kept += v[j] != 0;
      const float scaled = v[j] * scale;
      if (!IsLossy(v[j], scaled)) continue;
      --kept;
      atomicMax(&lossy->lost, __float_as_uint(LostOf(v[j], scaled)));
      const int at = atomicAdd(&lossy->count, 1);
      if (at < kMostLossy) {
        lossy->places[at] = place_of(row, first + 32 * j);
      }
    }
  }
  kept = __reduce_add_sync(0xffffffff, kept);
  if (tile.thread % 32 == 0) atomicAdd(&lossy->kept, kept);
}

// Threads that mend a tile together: whole warps, numbered from 0 on, and the
// barrier at which they meet. The lanes of a warp need not be together there,
// as behind a loop that some of them left early.
struct MendingGroup {
  int thread, threads, barrier;

  __device__ __forceinline__ void Sync() const {
    __syncwarp();  // SyncGroup would count a warp once for each part of it
    SyncGroup(barrier, threads);
  }
};

// Mends the outputs y of the block's doubtful tiles, of which there are some.
// The block's first `threads` threads call this, when they see these outputs.
// `lossy` is shared memory that nobody uses any more, kMostMendingGroups of
// them. Inlined, although on ordinary data it is not reached: in a kernel that
// calls a function the compiler may keep what is the same for all lanes, such
// as the descriptors of products, in registers of each lane.
template <bool kPadded = false>
__device__ __forceinline__ void MendOutputs(int threads, const Mend& mend,
                                            const float* x, float* y,
                                            DoubtfulTiles doubtful,
                                            LossyInputs* lossy) {
  constexpr int kWarpgroup = 128;
  // Of 16 the last. Some may be those of tensor_split's teams, which are done.
  constexpr int kFirstBarrier = 16 - kMostMendingGroups;
  const int count = *doubtful.count;
  MendingGroup group = {static_cast<int>(threadIdx.x), threads, kFirstBarrier};
  group.Sync();  // all have read the count, which may lie where `lossy` does
  int first = 0, step = 1;
  // Threads mostly wait: for loads, and for each other. So each warpgroup mends
  // tiles of its own, where there are as many.
  if (threads % kWarpgroup == 0 && threads <= kMostMendingGroups * kWarpgroup &&
      count >= threads / kWarpgroup) {
    first = group.thread / kWarpgroup, step = threads / kWarpgroup;
    group = {group.thread % kWarpgroup, kWarpgroup, kFirstBarrier + first};
    lossy += first;
  }
  const MendPlan& plan = mend.plan;
  DoubtfulTile next = doubtful.At(first);
#pragma unroll 1
  for (int i = first; i < count; i += step) {
    const DoubtfulTile tile = next;
    if (i + step < count) next = doubtful.At(i + step);  // arrives meanwhile
    Mending<kPadded> mending = {group.thread,
                                group.threads,
                                x,
                                mend.k,
                                y,
                                mend.filters,
                                tile.first_filter,
                                tile.end_filter,
                                plan.tiles.At(tile.index),
                                tile.exponent};
    group.Sync();  // all have done the tile before
    if (group.thread == 0) {
      lossy->count = lossy->lost = lossy->kept = 0;
      lossy->look_everywhere = 0;
    }
    group.Sync();
    if (tile.lossy && tile.exponent != kNotScalable) {
      FindLossy(plan, mending, lossy);
    }
    group.Sync();
    mending.lossy = lossy->count;
    mending.lost = __uint_as_float(lossy->lost);
    mending.dominated = mending.lossy > lossy->kept;
    // If the places around the lossy inputs are most of the tile, or too many
    // to remember, all of it is looked at.
    const bool everywhere =
        mending.dominated || mending.lossy > kMostLossy ||
        int64_t{mending.lossy} * plan.K * plan.K >=
            int64_t{mending.area.rows} * mending.area.columns;
#pragma unroll 1
    for (int begin = tile.first_filter; begin < tile.end_filter;
         begin += kMostBounds) {
      mending.first_filter = begin;
      mending.end_filter = min(begin + kMostBounds, tile.end_filter);
      if (begin > tile.first_filter) group.Sync();  // bounds are not used
      for (int m = begin + group.thread; m < mending.end_filter;
           m += group.threads) {
        const OutputBounds bounds = mending.Bounds(plan, m, everywhere);
        lossy->bounds[m - begin] = bounds;
        if (bounds.look == OutputBounds::kEverywhere) {
          lossy->look_everywhere = 1;
        }
      }
      group.Sync();
      if (lossy->look_everywhere != 0) {
        mending.MendEverywhere(plan, lossy->bounds);
      }
      if (!everywhere) {
        mending.MendAround(plan, lossy->bounds, lossy->places, mending.lossy);
      }
    }
  }
}

// The same by a call, for kernels that are faster so.
template <bool kPadded = false>
__device__ __noinline__ void CallMendOutputs(int threads, const Mend& mend,
                                             const float* x, float* y,
                                             DoubtfulTiles doubtful,
                                             LossyInputs* lossy) {
  MendOutputs<kPadded>(threads, mend, x, y, doubtful, lossy);
}

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_MEND_CUH_
