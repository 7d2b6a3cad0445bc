// The kernel of tensor_strips: every warp computes strips of output rows by
// itself. For each of its items a warp
//
//   splits the strip's inputs, which are in registers, to its slab (ForWords,
//     SplitStrip),
//   starts to load the next strip's inputs (LoadAhead),
//   multiplies: for each group of filters and each octet of units
//     (MultiplyGroup), with the sums going to its stage (StageOctet),
//   has the copy engine write the stage, while it goes on (StoreStage).
//
// Shared memory holds the arranged filters; then for each warp its stage and
// its slab, high halves before low ones; then what StripsBlock says, and the
// exponents of the filters' scales.
//
// Nothing but the arrival of the filters is waited for by the whole block. A
// warp's own lanes meet (__syncwarp) after the slab is written, before it is
// written again (in `largest`), and on both sides of StoreStage.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_TENSOR_STRIPS_CUH_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_TENSOR_STRIPS_CUH_

#include <cstdint>
#include <utility>

#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/mend.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/strips/mma_plan.h"
#include "kernels/convolution/cuda/strips/octet_outputs.cuh"
#include "kernels/convolution/cuda/strips/octet_products.cuh"
#include "kernels/convolution/cuda/strips/padded_strips.h"
#include "kernels/convolution/cuda/strips/strip_inputs.cuh"
#include "kernels/convolution/cuda/strips/strips.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// A warp's walk over the items of its block, which follow each other in the
// output: a warp takes the next item when it is ready for it.
class DynamicWalk {
 public:
  // *taken, in shared memory, counts the items that were taken: at first one
  // for each warp.
  __device__ DynamicWalk(const StripsPlan& plan, int warp, int* taken)
      : taken_(taken) {
    const int of_image = plan.strips * plan.parts;
    const int64_t begin = blockIdx.x * plan.block_items;
    items_ = min(plan.block_items, plan.items() - begin);
    first_image_ = begin / of_image;
    first_rest_ = begin - first_image_ * of_image;
    GoTo(plan, warp);
  }
  __device__ __forceinline__ bool Done() const { return done_; }
  __device__ __forceinline__ void Advance(const StripsPlan& plan) {
    int item = 0;
    if (threadIdx.x % 32 == 0) item = atomicAdd(taken_, 1);
    GoTo(plan, __shfl_sync(0xffffffff, item, 0));
  }
  template <bool kPooled, bool kPadded>
  __device__ __forceinline__ StripItem Item(const StripsPlan& plan,
                                            int strip_rows, const float* x,
                                            float* y) const {
    return MakeStripItem<kPooled, kPadded>(plan, strip_rows, image_, rest_, x,
                                           y);
  }

 private:
  __device__ __forceinline__ void GoTo(const StripsPlan& plan, int item) {
    const uint32_t of_image = plan.strips * plan.parts;
    const uint32_t rest = first_rest_ + item;
    const uint32_t images = rest / of_image;
    done_ = item >= items_;
    image_ = first_image_ + images;
    rest_ = rest - images * of_image;
  }

  int* taken_;
  int64_t first_image_, image_;
  int first_rest_, rest_;  // strips and parts within the image
  int items_;              // of the block
  bool done_;
};

// What all warps of a block share.
struct StripsBlock {
  int taken;     // items
  int doubtful;  // DoubtfulTiles::count
  AllFilters all_filters;
};
static_assert(sizeof(StripsBlock) <= 8 * 4);  // StripsPlan::block_words

// A warp's own shared memory, and which lane of the warp this is.
struct StripsWarp {
  int lane;
  int g, t;  // lane 4 * g + t
  float* stage;
  uint32_t* high;  // the slab's high halves; low ones plan.slab_words on

  __device__ __forceinline__ StripsWarp(const StripsPlan& plan, uint4* shared)
      : lane(threadIdx.x % 32), g(lane / 4), t(lane % 4) {
    const int warp = threadIdx.x / 32;
    uint32_t* const own = reinterpret_cast<uint32_t*>(shared) +
                          plan.filter_words() + warp * plan.warp_words();
    stage = reinterpret_cast<float*>(own);
    high = own + plan.stage_words;
  }

  // Writes zeros to the whole slab, also where no strip puts inputs: units that
  // reach beyond a row's end multiply those by zero.
  __device__ __forceinline__ void ClearSlab(const StripsPlan& plan) const {
    for (int i = lane; i < 2 * plan.slab_words; i += 32) high[i] = 0;
  }
};

// Starts to write the first `count` floats of each of `filters` filters from
// the stage, where each begins as far from a multiple of 32 bytes as in the
// output. The stage may be written again after WaitForStage.
__device__ __forceinline__ void StoreStage(const float* stage, int pitch,
                                           float* to, int area, int filters,
                                           int count, int lane) {
#if __CUDA_ARCH__ >= 900
  FenceAsyncProxy();
  __syncwarp();
  for (int i = lane; i < 4 * filters; i += 32) {
    const int m = i / 4;
    float* const out = to + int64_t{m} * area;
    StorePiece(stage + m * pitch + Skew(out), out, count, i % 4);
  }
  CommitBulkStores();
#else
  // Whole lines of 128 bytes, of which each lane writes a vector.
  __syncwarp();
  for (int m = 0; m < filters; ++m) {
    float* const out = to + int64_t{m} * area;
    const float* const in = stage + m * pitch + Skew(out);
    const int in_line =
        static_cast<int>(reinterpret_cast<uintptr_t>(out) / 4 % 32);
    for (int i = 4 * lane - in_line; i < count; i += 4 * 32) {
      if (i >= 0 && i + 4 <= count) {
        *reinterpret_cast<float4*>(out + i) =
            *reinterpret_cast<const float4*>(in + i);
      } else {
        for (int j = max(i, 0); j < min(i + 4, count); ++j) out[j] = in[j];
      }
    }
  }
#endif
}
__device__ __forceinline__ void WaitForStage() {
#if __CUDA_ARCH__ >= 900
  WaitForBulkReads();
#endif
  __syncwarp();
}

// A group's filters, of which the lane's first vector is at a shared address.
// With one channel they stay in registers for all octets of a strip.
template <int kShape>
struct GroupFilters {
  static constexpr StripsShape kOf = kStripsShapes[kShape];
  uint4 vectors[kOf.steps][kOf.tiles_n];
  uint32_t address;

  __device__ __forceinline__ explicit GroupFilters(uint32_t first_vector)
      : address(first_vector) {
    if constexpr (kOf.one_channel) {
#pragma unroll
      for (int i = 0; i < kOf.steps; ++i) {
#pragma unroll
        for (int n = 0; n < kOf.tiles_n; ++n) {
          vectors[i][n] = LoadShared4(address + (i * kOf.tiles_n + n) * 512);
        }
      }
    }
  }
};

// Adds the products of an octet, whose inputs the lane reads from `in` on, and
// of all channels to `sum`.
template <int kShape, int kS, int kNT>
__device__ __forceinline__ void ComputeOctet(
    const StripsPlan& plan, SlabAddress in, const GroupFilters<kShape>& filters,
    bool one_signed, float (&sum)[kS][kNT][4]) {
  constexpr int kSteps = kStripsShapes[kShape].steps;
  if constexpr (kStripsShapes[kShape].one_channel) {
    OctetOperands<kShape> operands;
    operands.Load(in);
    MultiplyOctet<kShape>(operands, filters.vectors, one_signed, sum);
  } else {
    float small[kS][kNT][4] = {};
    uint32_t channel_filters = filters.address;
#pragma unroll 1
    for (int c = 0; c < plan.C; ++c) {
      MultiplyChannel<kShape>(in, channel_filters, plan.zero, sum, small);
      in.at += 4 * plan.plane_words;
      channel_filters += kSteps * kNT * 512;
    }
    AddSums(small, sum);
  }
}

// Multiplies the strip in the slab, where the lane's first word is at `slab`,
// by a group of filters, whose ExponentBits begin at `exponents`, and leaves
// the outputs in the stage. Inputs were scaled by 2^exponent. `units` are the
// strip's, and `to` is the first output of the group.
template <int kShape, bool kPooled>
__device__ __forceinline__ void MultiplyGroup(
    const StripsPlan& plan, const StripsWarp& warp, const SlabAddress& slab,
    int units, int group, const GroupFilters<kShape>& filters,
    const uint32_t* exponents, int exponent, bool one_signed, const float* to,
    bool store_pairs) {
  const int area =
      OutputOf<kPooled>(plan.H_out) * OutputOf<kPooled>(plan.W_out);
  constexpr StripsShape s = kStripsShapes[kShape];
  constexpr int kR = s.rows, kNT = s.tiles_n, kShifts = s.shifts;
  const int g = warp.g, t = warp.t;
  // Where columns 8 * n + 2 * t and the next of the products go.
  float* lane_stage[kNT];
  float scale[kNT];
#pragma unroll
  for (int n = 0; n < kNT; ++n) {
    const int m = (8 * n + 2 * t) / kShifts;
    scale[n] = ScaleBack(exponent, exponents[m]);
    lane_stage[n] =
        warp.stage + m * plan.stage_pitch + Skew(to + int64_t{m} * area);
  }
  float bias[kNT];
  if constexpr (kPooled) {
#pragma unroll
    for (int n = 0; n < kNT; ++n) {
      const int m = group * s.filters() + (8 * n + 2 * t) / kShifts;
      bias[n] = plan.epilogue.bias != nullptr && m < plan.M
                    ? plan.epilogue.bias[m]
                    : 0;
    }
  }
#pragma unroll 1
  for (int first = 0; first < units; first += 8) {
    // Lanes beyond the last unit compute it again, and do not store it.
    const int unit = min(first + g, units - 1);
    const int band = Divide(unit, plan.units_magic);
    const int place = unit - band * plan.units;
    SlabAddress in = slab;
    in.at += 4 * (band * kR * plan.pitch + place * (kShifts / 2));
    float sum[kR / 2][kNT][4] = {};
    ComputeOctet(plan, in, filters, one_signed, sum);
    if (first == 0) WaitForStage();
    const int column = place * kShifts + 2 * t % kShifts;
    if constexpr (kPooled) {
      const int columns = plan.W_out / 2;
      if (first + g >= units || column / 2 >= columns) continue;
      PoolOctet<kR>(plan.epilogue.activation, columns, lane_stage,
                    band * (kR / 2) * columns + column / 2, bias, scale, sum);
    } else {
      if (first + g >= units || column >= plan.W_out) continue;
      StageOctet<kR>(plan, lane_stage, band * kR * plan.W_out + column,
                     store_pairs, column + 1 < plan.W_out, scale, sum);
    }
  }
}

#endif

constexpr int kStripsThreads = 32 * kStripsMostWarps;

// With kPooled the plan has an epilogue (halving.h), and with kPadded it is
// padded().
template <int kShape, bool kPooled, bool kPadded>
__global__ void __launch_bounds__(kStripsThreads, 1)
    StripsKernel(const float* __restrict__ x, const char* arranged,
                 const __grid_constant__ Mend mend, float* __restrict__ y,
                 const __grid_constant__ StripsPlan plan) {
#if __CUDA_ARCH__ >= 800
  constexpr StripsShape s = kStripsShapes[kShape];
  constexpr int kFilters = s.filters();
  extern __shared__ __align__(128) uint4 shared[];
  const StripsWarp warp(plan, shared);
  const int lane = warp.lane;
  auto* const block = reinterpret_cast<StripsBlock*>(
      reinterpret_cast<int*>(shared) + plan.filter_words() +
      plan.warps * plan.warp_words());
  uint32_t* const exponents = reinterpret_cast<uint32_t*>(block + 1);
  const DoubtfulTiles doubtful = {&block->doubtful, mend.tiles};
  if (threadIdx.x == 0) block->taken = plan.warps, block->doubtful = 0;
  const WordLoads loads = WordLoadsOf<kPadded>(plan, x);
  warp.ClearSlab(plan);
  WaitForKernelBefore();
  for (int i = threadIdx.x; i < plan.filter_words() / 4; i += blockDim.x) {
    shared[i] = reinterpret_cast<const uint4*>(arranged)[i];
  }
  for (int m = threadIdx.x; m < plan.filter_groups * kFilters;
       m += blockDim.x) {
    exponents[m] = ExponentBits(mend.filters[m].exponent);
  }
  const auto of_filters = AllFilters::Of(mend.filters, plan.M);
  if (threadIdx.x == 0) block->all_filters = of_filters;
  __syncthreads();

  const int strip_rows = plan.bands * s.rows;
  DynamicWalk walk(plan, threadIdx.x / 32, &block->taken);
  float2 ahead[s.loads];
  if (!walk.Done()) {
    LoadAhead<s.one_channel, kPadded>(
        plan, walk.Item<kPooled, kPadded>(plan, strip_rows, x, y), loads, lane,
        ahead);
  }
  SlabAddress slab = {0, static_cast<uint32_t>(plan.pitch * 4),
                      static_cast<uint32_t>(plan.slab_words * 4)};
  const int area =
      OutputOf<kPooled>(plan.H_out) * OutputOf<kPooled>(plan.W_out);
  const bool store_pairs =
      plan.W_out % 2 == 0 && reinterpret_cast<uintptr_t>(y) % 8 == 0;
  const auto largest = [](uint32_t v) {
    v = __reduce_max_sync(0xffffffff, v);
    __syncwarp();
    return v;
  };
  int exponent = kUsualExponent;  // of the strip before
  while (!walk.Done()) {
    const StripItem item = walk.Item<kPooled, kPadded>(plan, strip_rows, x, y);
    const int words = WordsOf<s.one_channel, kPadded>(plan, item);
    const auto for_words = [&](const auto& put) {
      ForWords<s.one_channel, kPadded>(plan, item, words, loads, lane, ahead,
                                       put);
    };
    const auto plane = [&](int c) {
      return item.from + c * (kPadded ? plan.area() : plan.H * plan.W);
    };
    const bool lossy =
        SplitStrip<s.one_channel>(plan, plane, item.inputs, lane, 32, warp.high,
                                  exponent, for_words, largest);
    if (lane == 0) {
      ListIfDoubtful<kFilters>(plan, item, exponent, lossy, block->all_filters,
                               doubtful);
    }
    walk.Advance(plan);
    if (!walk.Done()) {
      LoadAhead<s.one_channel, kPadded>(
          plan, walk.Item<kPooled, kPadded>(plan, strip_rows, x, y), loads,
          lane, ahead);
    }
    __syncwarp();
    const int units = (item.rows + s.rows - 1) / s.rows * plan.units;
    slab.at = SharedAddress(warp.high + warp.t);
    for (int group = item.first_group; group < item.end_group; ++group) {
      const GroupFilters<kShape> filters(
          SharedAddress(shared + group * plan.filter_vectors + lane));
      float* const to = item.to + int64_t{group} * kFilters * area;
      MultiplyGroup<kShape, kPooled>(
          plan, warp, slab, units, group, filters, exponents + group * kFilters,
          exponent, block->all_filters.one_signed, to, store_pairs);
      StoreStage(warp.stage, plan.stage_pitch, to, area,
                 min(kFilters, plan.M - group * kFilters),
                 OutputOf<kPooled>(item.rows) * OutputOf<kPooled>(plan.W_out),
                 lane);
    }
    if (exponent == kNotScalable) {
      __syncwarp();
      // The next strip may not reach all of what is not finite.
      warp.ClearSlab(plan);
      __syncwarp();
    }
  }
#if __CUDA_ARCH__ >= 900
  WaitForBulkStores();
#endif
  __syncthreads();
  if (*doubtful.count > 0) {
    MendOutputs<kPadded>(blockDim.x, mend, x, y, doubtful,
                         reinterpret_cast<LossyInputs*>(shared));
  }
#endif
}

// The kernel of a shape.
template <bool kPadded, int... kShapes>
StripsFunction StripsFunctionAt(int shape, bool pooled,
                                std::integer_sequence<int, kShapes...>) {
  static constexpr StripsFunction kTable[][2] = {
      {StripsKernel<kShapes, false, kPadded>,
       StripsKernel<kShapes, kStripsShapes[kShapes].pools(), kPadded>}...};
  return kTable[shape][pooled];
}
template <bool kPadded>
StripsFunction StripsFunctionOf(int shape, bool pooled) {
  return StripsFunctionAt<kPadded>(
      shape, pooled, std::make_integer_sequence<int, kStripsShapeCount>());
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_TENSOR_STRIPS_CUH_
