// Every convolution: register tiles over tiles of the image in shared memory.
//
// Idea. Stride, padding and the filter's shape decide which pixels a sum sees,
// not how it is computed: from the first pixel of an output, a tap always
// stands at the same distance. So a table with one distance for each tap is all
// that differs between operations.
//
// - A block computes a tile of outputs (a part of an image, or several small
//   images) for up to 128 filters. The inputs that the tile needs come to
//   shared memory once for all taps, with zeros for the padding; beside them
//   stand the weights. Where they do not fit, or where it is faster, the taps
//   are taken in chunks, of which the next one is copied while one is
//   multiplied.
// - A thread has up to 16 filters at 4 to 8 positions, or fewer filters. The
//   threads of a warp share the filters, whose weights all of them read at
//   once, and have neighbouring positions.
// - Rows that begin at multiples of four elements come as they are, four at a
//   time (BringVectors). Others come by single elements, and with a stride of s
//   their columns lie apart by their remainder of s, so that neighbours read
//   neighbours there, too. Floats go past the registers both ways.
//
// Change against direct_tiled, which has the same idea for stride 1. The taps'
// table in place of loops that are unrolled for one size of filter, positions
// that follow each other over the ends of rows and images, and padding that is
// part of the copy.
//
// Cost. A tap takes a thread an addition and a load for each position beside
// the products. Positions of a tile that lie outside of the image, and filters
// beyond the last, compute nothing of use.
//
// Layouts. Distances between neighbours are the plan's, so that channels may
// come first or last; halves become floats on their way to shared memory, by
// way of registers, unless x is copied as floats before (gpu.cc).
//
// Accuracy. Each sum, or each of a few shares of it, adds its taps by fused
// multiply-adds in the order c, p, q: the contract of class fp32 holds as it
// does for the plain loop.
//
// Bound. Float32 arithmetic, where there are a few dozen taps; memory below.
#include <cstdint>
#include <utility>

#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/operation/cuda/general_tiles.cuh"
#include "kernels/operation/cuda/launches.h"
#include "kernels/operation/cuda/outputs.cuh"

namespace convlab::cuda {
namespace {

constexpr int kFloat = sizeof(float);

extern __shared__ __align__(16) unsigned char general_shared[];

// A thread's weights of one tap.
template <int kFilters>
__device__ __forceinline__ void LoadWeights(const float* from,
                                            float (&to)[kFilters]) {
  if constexpr (kFilters % 4 == 0) {
#pragma unroll
    for (int f = 0; f < kFilters; f += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + f);
      to[f] = four.x, to[f + 1] = four.y, to[f + 2] = four.z,
      to[f + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int f = 0; f < kFilters; ++f) to[f] = from[f];
  }
}

// Adds the sums of the other shares of the taps to those of share 0, by way of
// shared memory, of which nothing else is needed any more.
template <int kFilters, int kPositions>
__device__ __forceinline__ void AddShares(const GeneralPlan& plan, int share,
                                          int tile_warps, int warp,
                                          float (&sums)[kFilters][kPositions]) {
  constexpr int kSums = kFilters * kPositions;
  float* const partial = reinterpret_cast<float*>(general_shared) +
                         warp * (32 * kSums) + threadIdx.x % 32;
  const int pitch = tile_warps * (32 * kSums);
  if (share > 0) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      partial[(share - 1) * pitch + 32 * i] =
          sums[i / kPositions][i % kPositions];
    }
  }
  __syncthreads();
  if (share > 0) return;
  for (int other = 0; other < (1 << plan.shares_log) - 1; ++other) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      sums[i / kPositions][i % kPositions] += partial[other * pitch + 32 * i];
    }
  }
}

// Finishes a thread's sums and stores them; few instructions, because each is
// executed once for each block and has to be fetched.
template <int kFilters, int kPositions, bool kHalves>
struct Finishing {
  const GeneralPlan& plan;
  const void* bias;
  int first;  // filter

  // to[j] is where the first filter's output of position j goes, if it exists.
  template <Activation kActivation, typename T>
  __device__ __forceinline__ void Store(
      const float (&sums)[kFilters][kPositions], unsigned exist,
      const int64_t (&to)[kPositions], T* y) const {
    const int filters = min(kFilters, plan.M - first);
    float added[kFilters];
#pragma unroll
    for (int f = 0; f < kFilters; ++f) {
      added[f] = bias != nullptr && f < filters
                     ? LoadBias(bias, first + f, kHalves && plan.halves_in)
                     : 0;
    }
    const auto finished = [&](int f, int j) {
      return Apply<kActivation>(sums[f][j] + added[f]);
    };
    // Measured: floats are faster filter by filter, and halves position by
    // position, without asking for each filter if all of them exist.
    if constexpr (kHalves) {
      const auto store = [&](int f_end) {
#pragma unroll
        for (int j = 0; j < kPositions; ++j) {
          if ((exist >> j & 1) == 0) continue;
          T* at = y + to[j];
#pragma unroll
          for (int f = 0; f < kFilters; ++f) {
            if (f < f_end) StoreOutput(at, finished(f, j));
            at += plan.out.c;
          }
        }
      };
      if (filters == kFilters && kActivation != Activation::kTanh) {
        store(kFilters);
      } else {
        store(filters);
      }
    } else {
      T* at[kPositions];
#pragma unroll
      for (int j = 0; j < kPositions; ++j) at[j] = y + to[j];
#pragma unroll
      for (int f = 0; f < kFilters; ++f) {
#pragma unroll
        for (int j = 0; j < kPositions; ++j) {
          const float value = finished(f, j);
          if ((exist >> j & 1) != 0 && f < filters) StoreOutput(at[j], value);
          at[j] += plan.out.c;
        }
      }
    }
  }
};

// With kHalves the filters, the bias and the outputs may be halves, and x:
// apart from the others because that costs these registers and instructions.
template <int kFilters, int kPositions, int kThreads, bool kHalves>
__global__ void __launch_bounds__(kThreads, 1)
    GeneralKernel(const void* __restrict__ x, const void* __restrict__ k,
                  const void* __restrict__ bias, void* __restrict__ y,
                  const __grid_constant__ GeneralPlan plan) {
  int* const table = reinterpret_cast<int*>(general_shared);
  float* const stages = reinterpret_cast<float*>(table + plan.chunk_taps);
  const int t = static_cast<int>(threadIdx.x);
  const Tile tile = FindTile(plan);
  const auto bring = [&](int index) {
    const Chunk chunk = FindChunk(plan, index);
    float* const stage =
        stages + (index & (plan.stages - 1)) * plan.stage_floats;
    BringWeights<kHalves>(plan, tile, chunk, k, stage + plan.input_floats);
    if (plan.vectors && plan.x_aligned) {
      if (kHalves && plan.halves_x) {
        BringVectors(plan, tile, chunk, static_cast<const __half*>(x), stage);
      } else {
        BringVectors(plan, tile, chunk, static_cast<const float*>(x), stage);
      }
    } else {
      BringInputs<kHalves>(plan, tile, chunk, x, stage);
    }
  };
  // The taps' distances from the first, in bytes.
  for (int tap = t; tap < plan.chunk_taps;
       tap += static_cast<int>(blockDim.x)) {
    const int c = plan.by_chunk_filter.Quotient(tap);
    const int rest = tap - c * (plan.chunk_rows * plan.chunk_columns);
    const int p = plan.by_chunk_columns.Quotient(rest);
    const int q = rest - p * plan.chunk_columns;
    const int place = plan.by_phases.Quotient(q);
    table[tap] =
        kFloat * (c * plan.channel_pitch + p * plan.row_pitch +
                  (q - place * plan.phases) * plan.phase_pitch + place);
  }
  const int tile_warps = plan.warps >> plan.shares_log;
  const int share = t / 32 / tile_warps;
  const int warp = t / 32 - share * tile_warps;
  const int filter = warp % plan.filter_warps * kFilters;
  const int first_position =
      warp / plan.filter_warps * (32 * kPositions) + t % 32;
  const int skipped = SkippedColumns(plan, tile);
  const int column_step = plan.vectors ? plan.stride_x : 1;
  int begin[kPositions];
#pragma unroll
  for (int j = 0; j < kPositions; ++j) {
    const Position position = FindPosition(plan, first_position + 32 * j);
    begin[j] = position.exists
                   ? kFloat * (position.image * plan.image_pitch +
                               position.row * plan.stride_y * plan.row_pitch +
                               position.column * column_step + skipped)
                   : 0;
  }

  // Before it reads x or writes y.
  WaitForKernelBefore();
  LetNextKernelStart();
  bring(0);
  CommitCopies();

  float sums[kFilters][kPositions] = {};
  for (int index = 0; index < plan.chunks; ++index) {
    if (index + 1 < plan.chunks) bring(index + 1);
    CommitCopies();
    WaitForCopies<1>();
    __syncthreads();
    const int taps = FindChunk(plan, index).taps;
    const float* const inputs =
        stages + (index & (plan.stages - 1)) * plan.stage_floats;
    const float* weights = inputs + plan.input_floats + filter;
    const auto multiply = [&](int distance) {
      const char* const from = reinterpret_cast<const char*>(inputs) + distance;
      float in[kPositions], weight[kFilters];
#pragma unroll
      for (int j = 0; j < kPositions; ++j) {
        in[j] = *reinterpret_cast<const float*>(from + begin[j]);
      }
      LoadWeights(weights, weight);
      weights += plan.weight_pitch;
#pragma unroll
      for (int f = 0; f < kFilters; ++f) {
#pragma unroll
        for (int j = 0; j < kPositions; ++j) {
          sums[f][j] = fmaf(weight[f], in[j], sums[f][j]);
        }
      }
    };
    // In vectors of the table.
    const int part = ((taps >> plan.shares_log) + 4) & ~3;
    int tap = min(share * part, taps);
    const int end = min(tap + part, taps);
    weights += tap * plan.weight_pitch;
    const auto multiply_four = [&] {
      const int4 four = *reinterpret_cast<const int4*>(table + tap);
      multiply(four.x);
      multiply(four.y);
      multiply(four.z);
      multiply(four.w);
      tap += 4;
    };
    // Measured: 7 positions gain 1 to 3 % from eight taps at once, and others
    // lose as much.
    if constexpr (kPositions == 7) {
      while (tap + 8 <= end) multiply_four(), multiply_four();
    }
    while (tap + 4 <= end) multiply_four();
    for (; tap < end; ++tap) multiply(table[tap]);
    // The stage is filled anew.
    if (index + 1 < plan.chunks) __syncthreads();
  }
  if (plan.shares_log > 0) {
    __syncthreads();
    AddShares(plan, share, tile_warps, warp, sums);
    if (share > 0) return;
  }

  const int64_t first_to = tile.image * plan.out.b +
                           int64_t{tile.row} * plan.out.h +
                           int64_t{tile.column} * plan.out.w +
                           int64_t{tile.filter + filter} * plan.out.c;
  int64_t to[kPositions];
  unsigned exist = 0;  // a bit for each
#pragma unroll
  for (int j = 0; j < kPositions; ++j) {
    const Position position = FindPosition(plan, first_position + 32 * j);
    if (position.image < tile.images && position.row < plan.OH - tile.row &&
        position.column < plan.OW - tile.column) {
      exist |= 1u << j;
    }
    to[j] = first_to + ImageOffset(position.image, plan.out) +
            int64_t{position.row} * plan.out.h +
            int64_t{position.column} * plan.out.w;
  }
  WithActivation(plan.activation, [&](auto activation) {
    const Finishing<kFilters, kPositions, kHalves> finish = {
        plan, bias, tile.filter + filter};
    if (kHalves && plan.halves_out) {
      finish.template Store<decltype(activation)::value>(
          sums, exist, to, static_cast<__half*>(y));
    } else {
      finish.template Store<decltype(activation)::value>(
          sums, exist, to, static_cast<float*>(y));
    }
  });
}

using Function = void (*)(const void*, const void*, const void*, void*,
                          GeneralPlan);

// The kernel for halves takes floats, too. With 7 positions it is the faster
// one for them, by its machine code (docs/journal/general_plan.md).
constexpr bool TakesHalves(GeneralShape shape, bool halves) {
  return halves || shape.positions == 7;
}

template <bool kHalves, int... kShapes>
Function FunctionOf(int shape, std::integer_sequence<int, kShapes...>) {
  constexpr Function kFunctions[] = {
      GeneralKernel<kGeneralShapes[kShapes].filters,
                    kGeneralShapes[kShapes].positions,
                    kGeneralShapes[kShapes].threads,
                    TakesHalves(kGeneralShapes[kShapes], kHalves)>...};
  return kFunctions[shape];
}

Function FunctionOf(const GeneralPlan& plan) {
  constexpr auto kShapes =
      std::make_integer_sequence<int, kGeneralShapeCount>();
  return plan.halves_in ? FunctionOf<true>(plan.shape, kShapes)
                        : FunctionOf<false>(plan.shape, kShapes);
}

}  // namespace

Error PrepareGeneral(GeneralPlan* plan) {
  const auto* const code = reinterpret_cast<const void*>(FunctionOf(*plan));
  plan->overlaps = MayOverlap(code);
  return AllowAllSharedMemory(code);
}

Error LaunchGeneral(const GeneralPlan& plan, const void* x, const void* k,
                    const void* bias, void* y, cudaStream_t stream) {
  GeneralPlan taken = plan;
  const int vector_bytes = plan.halves_x ? 8 : 16;
  taken.x_aligned = reinterpret_cast<uintptr_t>(x) % vector_bytes == 0;
  return LaunchOverlapping("GeneralKernel", FunctionOf(plan), plan.overlaps,
                           plan.blocks, 32 * plan.warps, plan.shared_bytes,
                           stream, x, k, bias, y, taken);
}

}  // namespace convlab::cuda
