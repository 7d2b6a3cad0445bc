// The kernel of wgmma_strips: every warpgroup computes strips of output rows by
// itself. For each of its items the warpgroup
//
//   waits until the copy engine has brought the strip's inputs, and adds what
//     the engine left out (RawStrip::Complete),
//   splits them to its slab (SplitStrip),
//   has the copy engine bring the next strip's inputs (RawStrip::Bring),
//   multiplies: for each group of filters and each tile of 64 units
//     (MultiplyGroup), with the sums going to its stage (StageTile),
//   has the copy engine write the stage, while it goes on (StoreGroup).
//
// Shared memory holds the arranged filters and the exponents of their scales,
// in their order in a product; then for each warpgroup its stage,
// its next strip's inputs as they come, and its slab, high halves before low
// ones.
//
// Barriers. `brought` of a warpgroup counts one arrival for each channel: the
// copy of that channel's inputs, or a thread's where there is nothing to copy.
// Its phases alternate from strip to strip. The warpgroup's own barrier
// (Warpgroup::Sync) is waited for after splitting, before it where a channel's
// inputs are no whole vectors, and on both sides of writing the stage.
// Warpgroups never wait for each other.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_STRIPS_CUH_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_STRIPS_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/mend.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/strips/raw_strip.cuh"
#include "kernels/convolution/cuda/strips/strips.cuh"
#include "kernels/convolution/cuda/strips/wgmma_filters.cuh"
#include "kernels/convolution/cuda/strips/wgmma_plan.h"
#include "kernels/convolution/cuda/strips/wgmma_tile.cuh"
#include "kernels/cuda/activation.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

// A warpgroup's walk over its items, `step` apart.
class StridedWalk {
 public:
  __device__ StridedWalk(const WgmmaStripsPlan& plan, int64_t first,
                         int64_t step) {
    const int of_image = plan.strips * plan.parts;
    image_ = first / of_image;
    rest_ = first - image_ * of_image;
    image_step_ = step / of_image;
    rest_step_ = step - image_step_ * of_image;
  }
  __device__ __forceinline__ bool Done(const WgmmaStripsPlan& plan) const {
    return image_ >= plan.batch;
  }
  __device__ __forceinline__ void Advance(const WgmmaStripsPlan& plan) {
    image_ += image_step_, rest_ += rest_step_;
    if (rest_ >= plan.strips * plan.parts) {
      rest_ -= plan.strips * plan.parts, ++image_;
    }
  }
  template <bool kPooled, bool kPadded>
  __device__ __forceinline__ StripItem Item(const WgmmaStripsPlan& plan,
                                            const float* x, float* y) const {
    return MakeStripItem<kPooled, kPadded>(plan, plan.strip_rows, image_, rest_,
                                           x, y);
  }

 private:
  int64_t image_, image_step_;
  int rest_, rest_step_;  // strips and parts of an image
};

// What all strips have in common.
template <bool kPooled>
struct StripsSizes {
  uint32_t pitch, low_offset, out_pitch;  // bytes of rows, and to low halves
  int area;                               // floats of a filter's outputs
  bool store_pairs;                       // whether 8 bytes are one access

  __device__ __forceinline__ StripsSizes(const WgmmaStripsPlan& plan,
                                         const float* y)
      : pitch(plan.pitch * 4),
        low_offset(plan.slab_words * 4),
        out_pitch(OutputOf<kPooled>(plan.W_out) * 4),
        area(OutputOf<kPooled>(plan.H_out) * OutputOf<kPooled>(plan.W_out)),
        store_pairs(plan.W_out % 2 == 0 &&
                    reinterpret_cast<uintptr_t>(y) % 8 == 0) {}
};

// What a lane has of a tile: of e = 0 and 1, units g and g + 8.
struct LaneUnits {
  uint32_t in[2], at[2];     // where their inputs are, and their outputs go
  bool valid[2], second[2];  // which of the lane's columns exist

  // Of the units of a strip, the tile's are those from `first` on.
  template <int kShape, bool kPooled>
  __device__ __forceinline__ void Find(const WgmmaStripsPlan& plan,
                                       const WarpgroupLane& lane,
                                       const StripsSizes<kPooled>& sizes,
                                       uint32_t image, int first, int units) {
    constexpr WgmmaStripsShape kS = kWgmmaStripsShapes[kShape];
    // Of a unit in y.
    constexpr int kColumns = kPooled ? kS.shifts / 2 : kS.shifts;
    constexpr int kRows = kPooled ? kS.rows / 2 : kS.rows;
    const int column = 2 * lane.t % kS.shifts / (kPooled ? 2 : 1);
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      // Lanes beyond the last unit compute it again, and do not store it.
      const int index = first + lane.warp * 16 + lane.g + 8 * e;
      const int unit = min(index, units - 1);
      const int band = Divide(unit, plan.units_magic);
      const int place = unit - band * plan.units;
      in[e] = image + band * (kS.rows * sizes.pitch) + place * (kS.shifts * 2);
      at[e] = band * (kRows * sizes.out_pitch) + place * (kColumns * 4);
      valid[e] = index < units && place * kColumns + column <
                                      (kPooled ? plan.W_out / 2 : plan.W_out);
      second[e] = place * kColumns + column + 1 < plan.W_out;
    }
  }
};

// Writes a tile's sums to the stage. base[b] is where output 0 of the lane's
// filter in octets b * kRows to b * kRows + kRows - 1 stands, and scale[b] what
// its sums are multiplied by.
template <int kRows, int kBases>
__device__ __forceinline__ void StageTile(
    const LaneUnits& units, const StripsSizes<false>& sizes,
    const uint32_t (&base)[kBases], const float (&scale)[kBases],
    const float (&sum)[4 * kRows * kBases]) {
  const auto stage_sums = [&](const auto& put) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      if (!units.valid[e]) continue;
#pragma unroll
      for (int v = 0; v < kRows; ++v) {
        const uint32_t row = units.at[e] + v * sizes.out_pitch;
#pragma unroll
        for (int b = 0; b < kBases; ++b) {
          const int i = (b * kRows + v) * 4 + 2 * e;
          put(base[b] + row, sum[i] * scale[b], sum[i + 1] * scale[b], e);
        }
      }
    }
  };
  if (sizes.store_pairs) {
    stage_sums(
        [&](uint32_t out, float a, float b, int) { StoreShared2(out, a, b); });
  } else {
    stage_sums([&](uint32_t out, float a, float b, int e) {
      StoreShared(out, a);
      if (units.second[e]) StoreShared(out + 4, b);
    });
  }
}

// Pools a tile's sums, times `scale`, and writes them to the stage with bias
// and activation applied. The lane's pairs of columns and of rows are windows.
template <int kRows, int kBases>
__device__ __forceinline__ void PoolTile(
    Activation activation, const LaneUnits& units, uint32_t out_pitch,
    const uint32_t (&base)[kBases], const float (&bias)[kBases],
    const float (&scale)[kBases], const float (&sum)[4 * kRows * kBases]) {
  WithActivation(activation, [&](auto kActivation) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      if (!units.valid[e]) continue;
#pragma unroll
      for (int v = 0; v < kRows; v += 2) {
#pragma unroll
        for (int b = 0; b < kBases; ++b) {
          const float* const top = sum + (b * kRows + v) * 4 + 2 * e;
          const float largest =
              fmaxf(fmaxf(top[0], top[1]), fmaxf(top[4], top[5]));
          StoreShared(base[b] + units.at[e] + v / 2 * out_pitch,
                      Apply<kActivation.value>(largest * scale[b] + bias[b]));
        }
      }
    }
  });
}

// Multiplies the strip in the slab, scaled by 2^exponent, by the group of
// filters at `filters`, whose ExponentBits begin at `exponents`, and leaves the
// outputs in the stage. `image` is the address of the lane's first word of the
// slab, `units` are the strip's, and `to` is the first output of the group.
template <int kShape, bool kPooled>
__device__ __forceinline__ void MultiplyGroup(
    const WgmmaStripsPlan& plan, const Warpgroup& warpgroup,
    const WarpgroupLane& lane, float* stage, const StripsSizes<kPooled>& sizes,
    uint32_t image, int units, int group, uint64_t filters,
    const uint32_t* exponents, int exponent, const AllFilters& all_filters,
    const float* to) {
  constexpr WgmmaStripsShape kS = kWgmmaStripsShapes[kShape];
  // Lane 4 * g + t has columns 2 * t and the next of an octet. Octets of kRows
  // rows are of the same filters.
  constexpr int kRows = kS.rows, kBases = kS.octets / kRows;
  const int column = 2 * lane.t % kS.shifts / (kPooled ? 2 : 1);
  uint32_t base[kBases];
#pragma unroll
  for (int b = 0; b < kBases; ++b) {
    const int place = b * (8 / kS.shifts) + 2 * lane.t / kS.shifts;
    base[b] = SharedAddress(
        stage + place * plan.stage_pitch + column +
        Skew(to + FilterAt<kS.filters()>(place) * int64_t{sizes.area}));
  }
  float bias[kBases];
  if constexpr (kPooled) {
#pragma unroll
    for (int b = 0; b < kBases; ++b) {
      const int place = b * (8 / kS.shifts) + 2 * lane.t / kS.shifts;
      const int m = group * kS.filters() + FilterAt<kS.filters()>(place);
      bias[b] = plan.epilogue.bias != nullptr && m < plan.M
                    ? plan.epilogue.bias[m]
                    : 0;
    }
  }
  // Few stay in registers, since a tile's sums would wait for shared memory.
  constexpr bool kHoldScales = kBases <= 3;
  float scale[kBases];
  const auto find_scales = [&] {
#pragma unroll
    for (int b = 0; b < kBases; ++b) {
      const int place = b * (8 / kS.shifts) + 2 * lane.t / kS.shifts;
      scale[b] = ScaleBack(exponent, exponents[place]);
    }
  };
  if constexpr (kHoldScales) find_scales();
#pragma unroll 1
  for (int first = 0; first < units; first += kWgmmaStripsUnits) {
    LaneUnits lane_units;
    lane_units.Find<kShape, kPooled>(plan, lane, sizes, image, first, units);
    float sum[4 * kS.octets];
    // The branch is around whole tiles, since products that ran across its end
    // would be serialized by the compiler.
    if (kS.run_of_one_sign() < kS.run() && all_filters.one_signed) {
      MultiplyTile<kShape, kS.run_of_one_sign()>(
          plan, lane_units.in, sizes.low_offset, filters, sum);
    } else {
      MultiplyTile<kShape, kS.run()>(plan, lane_units.in, sizes.low_offset,
                                     filters, sum);
    }
    if constexpr (!kHoldScales) find_scales();
    if (first == 0) {
      WaitForBulkReads();
      warpgroup.Sync();
    }
    if constexpr (kPooled) {
      PoolTile<kRows>(plan.epilogue.activation, lane_units, sizes.out_pitch,
                      base, bias, scale, sum);
    } else {
      StageTile<kRows>(lane_units, sizes, base, scale, sum);
    }
  }
}

// Starts to write a group's outputs, `to` being the first, from the stage:
// every fourth filter is a warp's, and four lanes write it.
template <int kFilters, bool kPooled>
__device__ __forceinline__ void StoreGroup(const WgmmaStripsPlan& plan,
                                           const WarpgroupLane& lane,
                                           const StripItem& item,
                                           const float* stage, int area,
                                           int group, float* to) {
  const int filters = min(kFilters, plan.M - group * kFilters);
  for (int m = lane.lane / 4 * 4 + lane.warp; m < filters; m += 32) {
    float* const out = to + int64_t{m} * area;
    StorePiece(stage + PlaceOf<kFilters>(m) * plan.stage_pitch + Skew(out), out,
               OutputOf<kPooled>(item.rows) * OutputOf<kPooled>(plan.W_out),
               lane.lane % 4);
  }
  CommitBulkStores();
}

#endif

// With kPooled the plan has an epilogue (halving.h), and with kPadded it is
// padded().
template <int kShape, bool kPooled, bool kPadded>
__global__ void __launch_bounds__(kWgmmaStripsShapes[kShape].threads(), 1)
    WgmmaStripsKernel(const float* __restrict__ x, const uint4* arranged,
                      const __grid_constant__ Mend mend, float* __restrict__ y,
                      const __grid_constant__ WgmmaStripsPlan plan) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  constexpr WgmmaStripsShape kS = kWgmmaStripsShapes[kShape];
  constexpr int kFilters = kS.filters(), kThreads = kWarpgroupThreads;
  extern __shared__ __align__(128) uint4 shared[];
  __shared__ uint32_t most[kS.warpgroups][2][4];
  __shared__ __align__(8) AllFilters all_filters;
  __shared__ int doubtful_count;
  __shared__ uint64_t barriers[kS.warpgroups];  // `brought` of each
  Warpgroup warpgroup(most[threadIdx.x / kThreads]);
  const int tid = warpgroup.thread();
  const WarpgroupLane lane(tid);
  const int filter_vectors = plan.filter_bytes() / 16;
  uint32_t* const exponents =
      reinterpret_cast<uint32_t*>(shared + filter_vectors);
  const WarpgroupMemory memory(
      plan,
      exponents + plan.exponent_words +
          threadIdx.x / kThreads * plan.warpgroup_words(),
      &barriers[threadIdx.x / kThreads]);
  const RawStrip& raw = memory.raw;
  memory.ClearSlab(plan, tid);
  if (tid == 0) InitBarrier(raw.brought, plan.C);
  if (threadIdx.x == 0) doubtful_count = 0;
  const DoubtfulTiles doubtful = {&doubtful_count, mend.tiles};
  __syncthreads();

  const StripsSizes<kPooled> sizes(plan, y);
  const WordLoads loads = WordLoadsOf<kPadded>(plan, x);
  const auto largest = [&](uint32_t v) { return warpgroup.Largest(v); };
  const int worker =
      blockIdx.x * plan.warpgroups + static_cast<int>(threadIdx.x) / kThreads;
  StridedWalk walk(plan, worker < plan.workers ? worker : plan.items(),
                   plan.workers);
  const auto bring = [&] {
    if (tid >= plan.C || walk.Done(plan)) return;
    raw.Bring(plan, walk.Item<kPooled, kPadded>(plan, x, y), tid);
  };
  // Inputs may be what the kernel before computes. If it arranges the filters,
  // they are not, and come meanwhile.
  if (plan.follows_inputs) WaitForKernelBefore();
  bring();
  WaitForKernelBefore();
  for (int i = threadIdx.x; i < filter_vectors; i += blockDim.x) {
    shared[i] = arranged[i];
  }
  for (int i = threadIdx.x; i < plan.filter_groups * kFilters;
       i += blockDim.x) {
    exponents[i / kFilters * kFilters + PlaceOf<kFilters>(i % kFilters)] =
        ExponentBits(mend.filters[i].exponent);
  }
  const auto of_filters = AllFilters::Of(mend.filters, plan.M);
  if (threadIdx.x == 0) all_filters = of_filters;
  FenceAsyncProxy();  // the tensor cores read filters as the engine does
  __syncthreads();
  int parity = 0;  // of the phase in which the strip's inputs come
  int exponent = kUsualExponent;  // of the strip before
  while (!walk.Done(plan)) {
    const StripItem item = walk.Item<kPooled, kPadded>(plan, x, y);
    WaitFor(raw.brought, parity);
    parity ^= 1;
    raw.Complete(plan, item, warpgroup);
    const int words = item.input_rows * plan.pitch;
    const auto for_words = [&](const auto& put) {
      raw.ForWords<kPadded>(plan, item, words, loads, tid, put);
    };
    const auto plane = [&](int c) { return raw.Plane(plan, item, c); };
    // In registers before all meet, so that the products wait for no load.
    const uint2 certain = LoadShared2(SharedAddress(&all_filters.least));
    const bool lossy =
        SplitStrip<true>(plan, plane, item.inputs, tid, kThreads, memory.high,
                         exponent, for_words, largest);
    if (tid == 0) {
      ListIfDoubtful<kFilters>(
          plan, item, exponent, lossy,
          {static_cast<int>(certain.x), static_cast<int>(certain.y)}, doubtful);
    }
    // All have read these inputs, or Sync in Largest would not have let this
    // thread pass.
    walk.Advance(plan);
    bring();
    const int units = (item.rows + kS.rows - 1) / kS.rows * plan.units;
    const uint32_t image = SharedAddress(memory.high + lane.t);
    for (int group = item.first_group; group < item.end_group; ++group) {
      const uint64_t filters = ColumnsAt(__shfl_sync(
          kAllLanes, SharedAddress(shared) + group * 2 * plan.group_bytes, 0));
      float* const to = item.to + int64_t{group} * kFilters * sizes.area;
      MultiplyGroup<kShape>(plan, warpgroup, lane, memory.stage, sizes, image,
                            units, group, filters, exponents + group * kFilters,
                            exponent, all_filters, to);
      FenceAsyncProxy();
      warpgroup.Sync();
      StoreGroup<kFilters, kPooled>(plan, lane, item, memory.stage, sizes.area,
                                    group, to);
    }
    if (exponent == kNotScalable) {
      warpgroup.Sync();
      // The next strip may not reach all of what is not finite.
      memory.ClearSlab(plan, tid);
      warpgroup.Sync();
    }
  }
  WaitForBulkStores();
  __syncthreads();
  if (doubtful_count > 0) {
    MendOutputs<kPadded>(blockDim.x, mend, x, y, doubtful,
                         reinterpret_cast<LossyInputs*>(shared));
  }
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_STRIPS_CUH_
