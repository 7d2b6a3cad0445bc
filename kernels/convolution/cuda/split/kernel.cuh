// The convolution on FP16 tensor cores with scaled operands: tensor_split's
// kernel. Needs compute capability 8.0.
//
// Teams of a few warps go from tile to tile, an image or a part of one. A team
// copies a tile's inputs to shared memory as halves, [plane][row][column]
// [channel]; a plane holds 1 to 8 channels (tile_io.cuh). So the values that a
// filter row meets lie side by side, those of the next output begin
// plane_channels halves later, and a filter tap is only an offset.
//
// The product (multiply.cuh). Its depth runs over planes, filter rows, and a
// filter row's halves in chunks of 8, of which a step, one m16n8k16, takes two.
// Chunks may end beyond the row, where the filters have zeros. Its columns are
// filters, or filters times `shifts`: column n = filter * shifts + d holds the
// filter moved d pixels to the right, so that a row of the product yields
// `shifts` neighbouring outputs. For one input channel that makes a row begin
// at a word and fills the chunk: K = 5 and four shifts are 8 halves. There a
// step takes one chunk of two filter rows instead ("row pairs").
//
// A warp's item. A unit is `shifts` columns of a band of 2 * kS rows. Rows g
// and g + 8 of the m16 tile are unit g in two output rows, j and j + kS, and
// the tiles j = 0 to kS - 1 make all rows of the band. Input rows j + r and j
// + r + kS are the operands of filter row r, and those of j - 1 and r + 1 too:
// the registers rotate, and one row of words is loaded for kS * tiles_n
// products.
//
// Rounding. Tensor cores cut off bits where they add, so that long chains lose
// accuracy. The sums over two filter rows of a step, or two row pairs, are
// therefore added to the item's sums by ordinary additions; those of each row
// pair if the weights of some filter have one sign, so that sums grow with
// every step. The small products have sums of their own, or come first.
//
// The output. Between two barriers a team fills its stage in shared memory with
// some bands of some filters; this is a phase. From there outputs go to
// memory in whole lines of 128 bytes.
//
// Range. A tile is scaled (halves.cuh) as the one before was. If its own
// largest value shows that to be wrong it is copied again, so that the result
// depends on that value only. Doubtful tiles are listed for mend.cuh.
#ifndef KERNELS_CONVOLUTION_CUDA_SPLIT_KERNEL_CUH_
#define KERNELS_CONVOLUTION_CUDA_SPLIT_KERNEL_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/mend.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/split/multiply.cuh"
#include "kernels/convolution/cuda/split/plan.h"
#include "kernels/convolution/cuda/split/tile_io.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// `own` is where the teams' parts of shared memory begin.
__device__ __forceinline__ SplitTeam TeamOfThread(const SplitPlan& plan,
                                                  char* own) {
  SplitTeam team;
  team.threads = plan.warps * 32;
  team.index = threadIdx.x / team.threads;
  team.tid = threadIdx.x - team.index * team.threads;
  team.warp = team.tid / 32;
  team.lane = team.tid % 32;
  team.g = team.lane / 4, team.t = team.lane % 4;
  uint32_t* const words =
      reinterpret_cast<uint32_t*>(own) + team.index * plan.team_words();
  team.shared = reinterpret_cast<SplitShared*>(words);
  team.stage = reinterpret_cast<float*>(words + kSplitSharedWords);
  team.high = words + kSplitSharedWords + plan.stage_floats;
  team.low = team.high + plan.image_words;
  return team;
}

// Clears what no tile reaches too, because it is multiplied by zero.
__device__ __forceinline__ void ClearInputs(const SplitPlan& plan,
                                            const SplitTeam& team) {
  for (int i = team.tid; i < 2 * plan.image_words; i += team.threads) {
    team.high[i] = 0;
  }
}

// The tiles of an image, and the distances of its channels, in and out.
// Computed once, because the compiler spills registers if it has to hoist them
// itself.
struct SplitImage {
  int tiles;
  int64_t area;
  int out_area;
};

template <bool kPadded>
__device__ __forceinline__ SplitTile TileAt(const SplitPlan& plan,
                                            const SplitImage& image,
                                            const float* x, float* y,
                                            int64_t index) {
  const int64_t b = index / image.tiles;
  const int place = index - b * image.tiles;
  const int h0 = place / plan.tiles_x * plan.tile_rows;
  const int w0 = place % plan.tiles_x * plan.tile_columns;
  SplitTile tile;
  tile.rows = min(plan.tile_rows, plan.H_out - h0);
  tile.columns = min(plan.tile_columns, plan.W_out - w0);
  tile.to = y + b * plan.M * image.out_area + int64_t{h0} * plan.W_out + w0;
  if constexpr (kPadded) {
    tile.top = h0 - plan.inset.top, tile.left = w0 - plan.inset.left;
    tile.from = x + b * plan.C * image.area +
                int64_t{tile.top} * plan.inset.width + tile.left;
  } else {
    tile.top = tile.left = 0;
    tile.from = x + b * plan.C * image.area + int64_t{h0} * plan.W + w0;
  }
  tile.area = image.area;
  tile.input_rows = tile.rows + plan.K - 1;
  tile.input_columns = tile.columns + plan.K - 1;
  if constexpr (kPadded) {
    tile.above = min(max(-tile.top, 0), tile.input_rows);
    tile.inset_rows = max(
        min(tile.top + tile.input_rows, plan.inset.height) - max(tile.top, 0),
        0);
  } else {
    tile.above = 0, tile.inset_rows = tile.input_rows;
  }
  return tile;
}

// Copies the tile's inputs to shared memory, scaled by 2^*exponent, at first
// that of the tile before. If the largest of them asks for another exponent,
// that is set and they are copied again. It becomes kNotScalable if there are
// infinities or NaN. Returns whether inputs are lossy.
template <bool kPadded>
__device__ __forceinline__ bool LoadScaled(const SplitPlan& plan,
                                           const SplitTeam& team,
                                           const SplitTile& tile,
                                           int* exponent) {
  if (*exponent == kNotScalable) *exponent = kUsualExponent;
  // Where a tile is the whole image, the zeros around it stay.
  if (kPadded && plan.linear && plan.tiles_y > 1) {
    ClearRowsAround(plan, team, tile);
  }
  for (;;) {
    Extent extent =
        CopyTile<kPadded>(plan, team, tile, PowerOfTwo(*exponent)).OfWarp();
    if (team.lane == 0) team.shared->extents[team.warp] = extent;
    team.Sync();
#pragma unroll
    for (int i = 0; i < kSplitMostWarps; ++i) {
      extent.most = max(extent.most, team.shared->extents[i].most);
      extent.least = min(extent.least, team.shared->extents[i].least);
    }
    const int right = extent.most == 0          ? *exponent
                      : IsFinite(extent.Most()) ? InputExponent(extent.Most())
                                                : kNotScalable;
    const bool again = right != *exponent && right != kNotScalable;
    *exponent = right;
    if (!again) return right != kNotScalable && extent.Lossy(right);
    team.Sync();  // the extents were read
  }
}

// Brings the inputs of the tile that begins at `next`, a whole image, to the L2
// cache.
__device__ __forceinline__ void PrefetchImage(const SplitPlan& plan,
                                              const SplitTeam& team,
                                              const float* next, int64_t area) {
  constexpr int kLine = 32;  // floats
  for (int64_t i = team.tid * kLine; i < plan.C * area;
       i += team.threads * kLine) {
    PrefetchToL2(next + i);
  }
}

// What all items of a tile share: words from unit to unit, bytes from row to
// row and from high halves to low ones, and where the tile's high halves are.
struct SplitItems {
  int unit_words;
  uint32_t pitch, low_offset, high_address;
};

__device__ __forceinline__ SplitItems ItemsOf(const SplitPlan& plan,
                                              const SplitTeam& team) {
  SplitItems items;
  items.unit_words = plan.shifts * plan.plane_channels / 2;
  items.pitch = plan.pitch * 4;
  items.low_offset = plan.image_words * 4;
  items.high_address = SharedAddress(team.high);
  return items;
}

// What a team computes between two barriers, to fill the stage once: some
// bands by some groups of filters.
struct SplitPhase {
  int band0;          // the first band
  int row0, rows;     // of the tile's outputs
  int units, octets;  // of all those bands; octets are eight units
  int group0, filter_groups;
};

// The first filter of a phase, and the one after its last.
template <int kNT>
__device__ __forceinline__ int FirstFilter(const SplitPlan& plan,
                                           const SplitPhase& phase) {
  return phase.group0 * kNT * 8 >> plan.shift_log;
}
template <int kNT>
__device__ __forceinline__ int EndFilter(const SplitPlan& plan,
                                         const SplitPhase& phase) {
  return min(plan.M,
             (phase.group0 + phase.filter_groups) * kNT * 8 >> plan.shift_log);
}

// Computes a phase's items, the warps taking turns, and stages their sums.
template <int kK, int kR, int kNT, bool kRowPairs, bool kFewRegisters,
          typename Filters>
__device__ __forceinline__ void ComputePhase(
    const SplitPlan& plan, const SplitTeam& team, const SplitTile& tile,
    const SplitItems& items, const SplitPhase& phase, const char* filters) {
  constexpr int kS = kR / 2;
  for (int item = team.warp; item < phase.octets * phase.filter_groups;
       item += plan.warps) {
    const int filter_group = item / phase.octets;
    const int unit = (item - filter_group * phase.octets) * 8 + team.g;
    // What lies beyond the last unit computes that again, and is not stored.
    const int near = min(unit, phase.units - 1);
    const int band = Divide(near, plan.units_magic);
    const int place = near - band * plan.units;
    uint32_t in =
        items.high_address + 4 * ((phase.band0 + band) * kR * plan.pitch +
                                  place * items.unit_words + team.t);
    Filters item_filters(filters +
                         int64_t{phase.group0 + filter_group} *
                             plan.filter_vectors * kSplitVectorBytes +
                         team.lane * kSplitVectorBytes);
    float sum[kS][kNT][4] = {};
    if constexpr (kRowPairs) {
      MultiplyRowPairs<kK, kR, kNT>(team.shared->all_filters.one_signed, in,
                                    items.low_offset, items.pitch, item_filters,
                                    sum);
    } else {
      const int steps = plan.chunks_per_plane / 2;
      float small[kS][kNT][4] = {};
#pragma unroll 1
      for (int plane = 0; plane < plan.planes; ++plane) {
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
          MultiplyStep<kK, kS, kNT, kFewRegisters>(plan.K, in, items.low_offset,
                                                   items.pitch, item_filters,
                                                   small, sum);
          in += 32;
          item_filters.Advance((kK > 0 ? kK : plan.K) * kNT);
        }
        in += 4 * plan.plane_words - 32 * steps;
      }
      Promote(small, sum);
    }
    if (unit < phase.units) {
      const int column = place * plan.shifts;
      StageSums<kR, kNT>(plan, sum, filter_group * kNT * 8 + 2 * team.t, column,
                         tile.columns,
                         team.stage + band * kR * tile.columns + column);
    }
  }
}

// Brings a phase's outputs from the stage to the tensor. The inputs were scaled
// by 2^exponent.
template <int kNT>
__device__ __forceinline__ void StorePhase(const SplitPlan& plan,
                                           const SplitTeam& team,
                                           const SplitTile& tile,
                                           const SplitPhase& phase,
                                           const ScaledFilter* scaled_filters,
                                           int exponent, int out_area) {
  const int m0 = FirstFilter<kNT>(plan, phase);
  const int m_end = EndFilter<kNT>(plan, phase);
  float* const to = tile.to + int64_t{m0} * out_area + phase.row0 * plan.W_out;
  if (tile.columns == plan.W_out) {
    StoreWholeRows(team.stage, plan.stage_pitch, to, out_area, m_end - m0,
                   phase.rows * plan.W_out, team.warp, plan.warps, team.lane,
                   scaled_filters + m0, exponent);
  } else {
    StorePartRows(plan, team.stage, to, out_area, m_end - m0, phase.rows,
                  tile.columns, team.warp, team.lane, scaled_filters + m0,
                  exponent);
  }
}

#endif

// Shared memory: the arranged filters; then for each team SplitShared, the
// stage, high halves, and low halves. With kPadded the plan is padded().
template <int kK, int kR, int kNT, bool kRowPairs, bool kFiltersShared,
          int kThreads, bool kPadded>
__global__ void __launch_bounds__(kThreads, 1)
    SplitKernel(const float* __restrict__ x, const char* __restrict__ arranged,
                const __grid_constant__ Mend mend, float* __restrict__ y,
                const __grid_constant__ SplitPlan plan) {
#if __CUDA_ARCH__ >= 800
  const int64_t filter_bytes = kFiltersShared ? plan.filter_bytes() : 0;
  extern __shared__ uint4 shared[];
  const char* const filters =
      kFiltersShared ? reinterpret_cast<const char*>(shared) : arranged;
  const SplitTeam team =
      TeamOfThread(plan, reinterpret_cast<char*>(shared) + filter_bytes);
  WaitForKernelBefore();
  for (int i = threadIdx.x; i < filter_bytes / 16; i += blockDim.x) {
    shared[i] = reinterpret_cast<const uint4*>(arranged)[i];
  }
  ClearInputs(plan, team);
  if (team.tid < kSplitMostWarps) team.shared->extents[team.tid] = Extent();
  const ScaledFilter* const __restrict__ scaled_filters = mend.filters;
  const auto all_filters = AllFilters::Of(scaled_filters, plan.M);
  if (team.tid == 0) {
    team.shared->all_filters = all_filters;
    team.shared->doubtful = 0;
  }
  __syncthreads();
  // The first team's count is the block's.
  const DoubtfulTiles doubtful = {
      &reinterpret_cast<SplitShared*>(reinterpret_cast<char*>(shared) +
                                      filter_bytes)
           ->doubtful,
      mend.tiles};

  int exponent = kUsualExponent;  // of the tile before
  const SplitImage image = {
      plan.tiles_y * plan.tiles_x,
      kPadded ? int64_t{plan.inset.height} * plan.inset.width
              : int64_t{plan.H} * plan.W,
      plan.H_out * plan.W_out,
  };
  const int64_t tiles = plan.tiles();
  const int64_t tile_step = int64_t{gridDim.x} * plan.teams;
  for (int64_t index = blockIdx.x + int64_t{gridDim.x} * team.index;
       index < tiles; index += tile_step) {
    const SplitTile tile = TileAt<kPadded>(plan, image, x, y, index);
    const bool lossy = LoadScaled<kPadded>(plan, team, tile, &exponent);
    if (team.tid == 0) {
      if (lossy || team.shared->all_filters.Doubt(exponent)) {
        doubtful.Add({index, 0, plan.M, exponent, lossy});
      }
    }
    if (image.tiles == 1 && index + tile_step < tiles) {
      const float* const from =
          kPadded ? x + index * plan.C * image.area : tile.from;
      PrefetchImage(plan, team, from + tile_step * plan.C * image.area,
                    image.area);
    }

    const SplitItems items = ItemsOf(plan, team);
    const int bands = (tile.rows + kR - 1) / kR;
    SplitPhase phase;
    for (phase.band0 = 0; phase.band0 < bands;
         phase.band0 += plan.phase_bands) {
      const int phase_bands = min(plan.phase_bands, bands - phase.band0);
      phase.units = phase_bands * plan.units;
      phase.octets = (phase.units + 7) / 8;
      phase.row0 = phase.band0 * kR;
      phase.rows = min(phase_bands * kR, tile.rows - phase.row0);
      for (phase.group0 = 0; phase.group0 < plan.filter_groups;
           phase.group0 += plan.phase_filter_groups) {
        phase.filter_groups =
            min(plan.phase_filter_groups, plan.filter_groups - phase.group0);
        // The stage was read.
        if (phase.band0 + phase.group0 > 0) team.Sync();
        ComputePhase<kK, kR, kNT, kRowPairs, (kThreads > 256),
                     SplitFilters<kFiltersShared>>(plan, team, tile, items,
                                                   phase, filters);
        team.Sync();
        StorePhase<kNT>(plan, team, tile, phase, scaled_filters, exponent,
                        image.out_area);
      }
    }
    if (exponent == kNotScalable) {
      // The next tile may not reach all of what is not finite.
      team.Sync();
      ClearInputs(plan, team);
      team.Sync();
    }
  }
  __syncthreads();
  if (*doubtful.count > 0) {
    CallMendOutputs<kPadded>(blockDim.x, mend, x, y, doubtful,
                             reinterpret_cast<LossyInputs*>(shared));
  }
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_SPLIT_KERNEL_CUH_
