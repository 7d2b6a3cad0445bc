// Mends the outputs of kernels whose operands are scaled halves: those that may
// have lost more than float32 would are computed again by the definition.
// Needs compute capability 8.0.
//
// A block of the kernel lists its doubtful tiles: those with lossy inputs, or
// whose scales some filters' outputs do not go with. When its outputs are
// written it takes one of them after the other. It finds the lossy inputs,
// looks at the outputs that they reach, and computes those that are too small
// to be certain (scaling.h). Outputs of filters with lossy weights are looked
// at all over the tile.
//
// So the kernel pays for one comparison of each tile, and on ordinary data
// there is little to look at.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_MEND_CUH_
#define KERNELS_CONVOLUTION_CUDA_LIB_MEND_CUH_

#include <cmath>
#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/mender.h"
#include "kernels/convolution/cuda/lib/output_tiles.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/scaling.h"
#include "kernels/cuda/activation.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// The inputs from a place of an image on. If the problem is kPadded, zeros
// stand around the image that is in memory (MendPlan::inset).
template <bool kPadded>
struct InputsFrom {
  const MendPlan& plan;
  // Channel 0 at that place; if kPadded, of the image in memory, to which the
  // place is relative.
  const float* first;
  int row, column;

  // Channel c's input at (h, w) from there if i < end, otherwise 0.
  __device__ __forceinline__ float LoadIfBelow(int i, int end, int c, int h,
                                               int w) const {
    if constexpr (kPadded) {
      const Inset& inset = plan.inset;
      const int y = row + h, x = column + w;
      const bool inside =
          static_cast<unsigned>(y) < static_cast<unsigned>(inset.height) &&
          static_cast<unsigned>(x) < static_cast<unsigned>(inset.width);
      return cuda::LoadIfBelow(
          i, inside ? end : i,
          first + (int64_t{c} * inset.height + y) * inset.width + x);
    }
    return cuda::LoadIfBelow(i, end,
                             first + (int64_t{c} * plan.H + h) * plan.W + w);
  }
};

// A sum by the definition of the inputs under the filter `k`. With kLanes = 32
// the lanes of a warp, which all call this, share the terms.
template <int kLanes, bool kPadded>
__device__ __forceinline__ float ExactSum(const MendPlan& plan,
                                          const InputsFrom<kPadded>& in,
                                          const float* k, int lane) {
  constexpr int kAtOnce = 4;
  const int K = plan.K, terms = plan.C * K * K;
  // From a lane's term to its next.
  const int step_q = kLanes % K, step_p = kLanes / K % K;
  const int step_c = kLanes / K / K;
  int q = lane % K, p = lane / K % K, c = lane / K / K;
  float sum = 0;
#pragma unroll 1
  for (int first = lane; first < terms; first += kAtOnce * kLanes) {
    float a[kAtOnce], b[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = first + j * kLanes;
      a[j] = in.LoadIfBelow(i, terms, c, p, q);
      b[j] = LoadIfBelow(i, terms, k + i);
      q += step_q, p += step_p, c += step_c;
      if (q >= K) q -= K, ++p;
      if (p >= K) p -= K, ++c;
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) sum = fmaf(a[j], b[j], sum);
  }
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffff, sum, distance);
  }
  return sum;
}

// What the threads that mend a tile know of it.
template <bool kPadded>
struct Mending {
  int thread, threads;
  const float *x, *k;
  float* y;
  const ScaledFilter* filters;
  int first_filter, end_filter;
  TileArea area;
  int exponent;
  int lossy;   // inputs
  float lost;  // at most, by one of them
  // Whether inputs are so large that most of the others but zeros are lossy. A
  // sum that such an input dominates lost bits in each step (docs/numerics.md).
  bool dominated;

  // In outputs, not sums. The last window of a row or column of the image may
  // have less than its size, or the image's last sums may be in none.
  __device__ __forceinline__ int rows(const MendPlan& plan) const {
    return min(CeilDivide(area.rows, plan.pool),
               plan.out_height - area.row / plan.pool);
  }
  __device__ __forceinline__ int columns(const MendPlan& plan) const {
    return min(CeilDivide(area.columns, plan.pool),
               plan.out_width - area.column / plan.pool);
  }

  // The least certain magnitude of filter m's sums: 0 if all are certain,
  // infinity if none is.
  __device__ __forceinline__ float LeastCertain(const MendPlan& plan,
                                                int m) const {
    const ScaledFilter filter = filters[m];
    if (dominated || !CanScaleBack(exponent, filter.exponent)) return INFINITY;
    const int terms = plan.C * plan.K * plan.K;
    const float sum = LeastCertainSum(filter.lossy) +
                      LeastCertainSum(min(lossy, terms), lost);
    return sum == 0
               ? 0
               : fmaxf(sum * ScaleBack(exponent, ExponentBits(filter.exponent)),
                       __uint_as_float(1));
  }
  __device__ __forceinline__ float* Output(const MendPlan& plan, int m, int h,
                                           int w) const {
    return y +
           ((area.image * plan.M + m) * plan.out_height + area.row / plan.pool +
            h) *
               plan.out_width +
           area.column / plan.pool + w;
  }
  // The inputs from (h, w) of the tile on.
  __device__ __forceinline__ InputsFrom<kPadded> Inputs(const MendPlan& plan,
                                                        int h, int w) const {
    if constexpr (kPadded) {
      const Inset& inset = plan.inset;
      return {plan,
              x + area.image * plan.C * (int64_t{inset.height} * inset.width),
              area.row + h - inset.top, area.column + w - inset.left};
    }
    return {plan,
            x + (area.image * plan.C * plan.H + area.row + h) * plan.W +
                area.column + w,
            0, 0};
  }
  // Whether an output is certain. Bias and activation are monotonic, so an
  // output beyond what sums of twice the least certain magnitude lead to is a
  // certain sum's. relu's 0 is certain where sums of four times that magnitude
  // lead to it, too: if the sum without losses is more, its own sum is certain;
  // otherwise it leads to 0 as well.
  __device__ __forceinline__ bool IsCertain(const MendPlan& plan, int m,
                                            float least, float output) const {
    const Activation activation = plan.epilogue.activation;
    const float bias =
        plan.epilogue.bias == nullptr ? 0 : plan.epilogue.bias[m];
    return output < Apply(activation, bias - 2 * least) ||
           output > Apply(activation, bias + 2 * least) ||
           (activation == Activation::kRelu && output == 0 &&
            bias < -4 * least);
  }
  // Computes an output. With kLanes = 32 all lanes of a warp call this.
  template <int kLanes>
  __device__ __forceinline__ void Compute(const MendPlan& plan, int m, int h,
                                          int w, int lane) const {
    float largest = -INFINITY;
#pragma unroll 1
    for (int i = 0; i < plan.pool * plan.pool; ++i) {
      const int row = plan.pool * h + i / plan.pool;
      const int column = plan.pool * w + i % plan.pool;
      if (area.row + row >= plan.tiles.height ||
          area.column + column >= plan.tiles.width) {
        continue;
      }
      const float sum =
          ExactSum<kLanes>(plan, Inputs(plan, row, column),
                           k + int64_t{m} * plan.C * plan.K * plan.K, lane);
      largest = plan.pool == 1 ? sum : MaxOrNan(sum, largest);
    }
    if (plan.epilogue.bias != nullptr) largest += plan.epilogue.bias[m];
    if (lane == 0) {
      *Output(plan, m, h, w) = Apply(plan.epilogue.activation, largest);
    }
  }
  // Each lane of a warp has an output, or none, to be computed by the whole
  // warp.
  __device__ __forceinline__ void ComputeFound(const MendPlan& plan, bool found,
                                               int m, int h, int w) const {
    const int own_lane = thread % 32;
#pragma unroll 1
    for (uint32_t left = __ballot_sync(0xffffffff, found); left != 0;
         left &= left - 1) {
      const int lane = __ffs(left) - 1;
      Compute<32>(plan, __shfl_sync(0xffffffff, m, lane),
                  __shfl_sync(0xffffffff, h, lane),
                  __shfl_sync(0xffffffff, w, lane), own_lane);
    }
  }

  // Looks at all outputs of filter m. Where many of a warp's are to be
  // computed, each lane computes its own.
  __device__ __forceinline__ void MendFilter(const MendPlan& plan,
                                             int m) const {
    const float least = LeastCertain(plan, m);
    if (least == 0) return;
    const int count = rows(plan) * columns(plan);
#pragma unroll 1
    for (int first = thread / 32 * 32; first < count; first += threads) {
      const int e = first + thread % 32;
      const int h = e / columns(plan), w = e - h * columns(plan);
      const bool found = e < count && !IsCertain(plan, m, least,
                                                 __ldcg(Output(plan, m, h, w)));
      constexpr int kMany = 8;
      if (__popc(__ballot_sync(0xffffffff, found)) <= kMany) {
        ComputeFound(plan, found, m, h, w);
      } else if (found) {
        Compute<1>(plan, m, h, w, 0);
      }
    }
  }
  // Looks at the outputs that lossy inputs reach, of all filters but those of
  // which all outputs are looked at. The inputs come in any order, and several
  // reach the same output, so all outputs are computed in the same way:
  // otherwise results would differ from run to run.
  __device__ __forceinline__ void MendAround(const MendPlan& plan,
                                             const int* places,
                                             int count) const {
    const int pool = plan.pool, K = plan.K;
    // Outputs side by side that an input reaches, of which the last may be
    // none.
    const int span = (K + pool - 2) / pool + 1;
    const int around = span * span * (end_filter - first_filter);
#pragma unroll 1
    for (int first = thread / 32 * 32; first < count * around;
         first += threads) {
      const int e = first + thread % 32;
      const int place = places[min(e / around, count - 1)];
      const int row = place / plan.W, column = place - row * plan.W;
      const int m = first_filter + e % around / span / span;
      const int h = max(row - K + 1, 0) / pool + e / span % span;
      const int w = max(column - K + 1, 0) / pool + e % span;
      bool found = false;
      if (e < count * around && h <= row / pool && h < rows(plan) &&
          w <= column / pool && w < columns(plan) && !LookAllOver(m)) {
        found = !IsCertain(plan, m, LeastCertain(plan, m),
                           __ldcg(Output(plan, m, h, w)));
      }
      ComputeFound(plan, found, m, h, w);
    }
  }
  // Whether outputs of filter m may be uncertain wherever they are.
  __device__ __forceinline__ bool LookAllOver(int m) const {
    return filters[m].lossy > 0 || !CanScaleBack(exponent, filters[m].exponent);
  }
};

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

// The threads that mend: whole warps, which number themselves from 0 on. Their
// lanes need not be together when they synchronize, as behind a loop that some
// of them left early; SyncGroup would count a warp once for each part of it.
struct MendingBlock {  // all threads of the block
  __device__ __forceinline__ int thread() const { return threadIdx.x; }
  __device__ __forceinline__ int threads() const { return blockDim.x; }
  __device__ __forceinline__ void Sync() const { __syncthreads(); }
};
template <int kThreads, int kBarrier>  // the first kThreads, with that barrier
struct MendingGroup {
  __device__ __forceinline__ int thread() const { return threadIdx.x; }
  __device__ __forceinline__ int threads() const { return kThreads; }
  __device__ __forceinline__ void Sync() const {
    __syncwarp();
    SyncGroup(kBarrier, kThreads);
  }
};

// Mends the outputs y of the block's doubtful tiles, of which there are some.
// All threads of the group call this, when they see these outputs.
// *lossy is shared memory that nobody uses any more. Inlined, although on
// ordinary data it is not reached: in a kernel that calls a function the
// compiler may keep what is the same for all lanes, such as the descriptors of
// products, in registers of each lane.
template <bool kPadded = false, typename Group>
__device__ __forceinline__ void MendOutputs(Group group, const Mend& mend,
                                            const float* x, float* y,
                                            DoubtfulTiles doubtful,
                                            LossyInputs* lossy) {
  const MendPlan& plan = mend.plan;
  const int thread = group.thread(), threads = group.threads();
  const int count = *doubtful.count;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    const DoubtfulTile tile = doubtful.At(i);
    Mending<kPadded> mending = {thread,
                                threads,
                                x,
                                mend.k,
                                y,
                                mend.filters,
                                tile.first_filter,
                                tile.end_filter,
                                plan.tiles.At(tile.index),
                                tile.exponent};
    group.Sync();  // all have done the tile before
    if (thread == 0) {
      lossy->count = lossy->lost = lossy->kept = lossy->all_over = 0;
    }
    group.Sync();
    if (tile.lossy && tile.exponent != kNotScalable) {
      FindLossy(plan, mending, lossy);
    }
    for (int m = tile.first_filter + thread; m < tile.end_filter;
         m += threads) {
      if (mending.LookAllOver(m)) lossy->all_over = 1;
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
    if (everywhere || lossy->all_over != 0) {
#pragma unroll 1
      for (int m = tile.first_filter; m < tile.end_filter; ++m) {
        if (everywhere || mending.LookAllOver(m)) mending.MendFilter(plan, m);
      }
    }
    if (!everywhere) mending.MendAround(plan, lossy->places, mending.lossy);
  }
}

// The same by a call, for kernels that are faster so.
template <bool kPadded = false, typename Group>
__device__ __noinline__ void CallMendOutputs(Group group, const Mend& mend,
                                             const float* x, float* y,
                                             DoubtfulTiles doubtful,
                                             LossyInputs* lossy) {
  MendOutputs<kPadded>(group, mend, x, y, doubtful, lossy);
}

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_MEND_CUH_
