// How tensor_split cuts a convolution; kernel.cuh says what the parts are. No
// CUDA in here, so that plans are tested without.
#ifndef KERNELS_CONVOLUTION_CUDA_SPLIT_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_SPLIT_PLAN_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/filter_layout.h"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// What a kernel was compiled for.
struct SplitShape {
  int kernel_size;  // kAnySize: any
  int rows;         // of outputs, of a warp's item; even
  int tiles_n;      // of a warp's item, each 8 columns of the product
  bool row_pairs;   // a step of the depth is two filter rows, not two chunks
  bool filters_shared;  // in shared memory; otherwise in global memory
  int threads;          // of a block, at most
};

// More rows and tiles reuse what was loaded more often, and need registers for
// their sums: three tiles need so many that a block has fewer threads.
constexpr SplitShape ChunkPairs(int kernel_size, int tiles_n) {
  return {kernel_size,
          /*rows=*/6,
          tiles_n,
          /*row_pairs=*/false,
          /*filters_shared=*/true,
          /*threads=*/tiles_n >= 3 ? 256 : 384};
}
constexpr SplitShape RowPairs(int kernel_size, int rows, int tiles_n) {
  return {kernel_size,
          rows,
          tiles_n,
          /*row_pairs=*/true,
          /*filters_shared=*/true,
          /*threads=*/384};
}
constexpr SplitShape WithFiltersInGlobalMemory(SplitShape shape) {
  shape.filters_shared = false;
  return shape;
}

constexpr int kAnySize = 0;
constexpr SplitShape kSplitShapes[] = {
    ChunkPairs(3, 3),
    ChunkPairs(3, 2),
    ChunkPairs(5, 3),
    ChunkPairs(5, 2),
    ChunkPairs(7, 3),
    ChunkPairs(7, 2),
    ChunkPairs(kAnySize, 3),
    ChunkPairs(kAnySize, 2),
    ChunkPairs(kAnySize, 1),
    WithFiltersInGlobalMemory(ChunkPairs(kAnySize, 2)),
    RowPairs(/*kernel_size=*/3, /*rows=*/6, /*tiles_n=*/3),
    RowPairs(3, 8, 1),
    RowPairs(5, 6, 3),
    RowPairs(5, 8, 1),
    RowPairs(7, 6, 3),
    RowPairs(7, 8, 1),
};
constexpr int kSplitShapeCount = sizeof(kSplitShapes) / sizeof(SplitShape);

constexpr int kSplitMostKernelSize = 11;
constexpr int kSplitMostWarps = 8;     // of a team
constexpr int kSplitSharedWords = 20;  // of a team's SplitShared
constexpr int kSplitMostTeams = 15;    // of a block; each has its own barrier

// In words of 4 bytes unless stated.
struct SplitPlan {
  int64_t batch;
  int C, H, W, M, K, H_out, W_out;
  // Planes hold plane_channels channels; a column of the product is a filter
  // and one of `shifts` neighbouring output columns.
  int plane_channels, planes, shifts, shift_log;
  // Chunks of eight halves of a filter row, of all planes and of one. Even, or
  // with row pairs 1.
  int chunks, chunks_per_plane;
  // Tiles of an image, a tile's outputs, and the inputs that these need.
  int tiles_y, tiles_x;
  int tile_rows, tile_columns;
  int input_rows, input_columns;
  // Of a tile: bands of the shape's `rows` rows, and units of `shifts`
  // columns.
  int bands, units;
  // A tile's inputs in shared memory.
  int pitch, plane_words, image_words;
  // Copied as one row: rows follow each other in x and in shared memory, or, if
  // it is padded(), in x only, where they have copy_columns columns. Otherwise
  // element by element of copy_columns columns, or pairs of columns.
  bool linear;
  int copy_columns;
  uint32_t copy_columns_magic, units_magic;  // for Divide
  // Groups of the shape's tiles_n tiles of columns, and vectors of arranged
  // filters in each.
  int filter_groups, filter_vectors;
  // Teams of a block, and warps of a team.
  int teams, warps;
  // A phase, which fills the stage once: bands by groups of filters.
  int phase_bands, phase_filter_groups;
  int stage_pitch, stage_floats;
  int shape;  // of kSplitShapes
  int shared_bytes;
  // Where the images in memory stand in the problem's, which have zeros around
  // them if it is padded().
  Inset inset;

  constexpr bool padded() const {
    return inset.height != H || inset.width != W;
  }
  constexpr int64_t tiles() const { return batch * tiles_y * tiles_x; }
  constexpr int64_t filter_bytes() const {
    return int64_t{filter_vectors} * filter_groups * kSplitVectorBytes;
  }
  // Of one team: SplitShared, stage, halves.
  constexpr int64_t team_words() const {
    return kSplitSharedWords + int64_t{stage_floats} + int64_t{2} * image_words;
  }
};

// How the filters stand in memory for a plan's kernel.
FilterLayout LayoutOf(const SplitPlan& plan);

// The three functions that make a plan, in their order. First the product, from
// a shape, the channels of a plane (1, 2, 4, 6 or 8) and shifts (1, 2, 4 or 8);
// false if they do not go together.
bool SetSplitProduct(const Problem& problem, int shape_index,
                     int plane_channels, int shifts, SplitPlan* plan);

// Then the tiles: `bands` bands of the shape's rows by `tile_columns`
// columns, or the image where that is less. False if a tile needs more shared
// memory than anything has.
bool SetSplitTiles(int bands, int tile_columns, SplitPlan* plan);

// Makes it the plan of images that stand so in the problem's, when it is done.
void UseSplitInset(const Inset& inset, SplitPlan* plan);

// Then the stage, which holds what a phase computes as [filter][row][column].
// The distance of two filters keeps the lanes of a store on different banks:
// 2 * stage_pitch = 8 mod 32 for one shift, else stage_pitch = 8 mod 32.
void SetSplitPhases(int phase_bands, int phase_filter_groups, SplitPlan* plan);

// Shared memory of a block of `teams` teams.
int64_t SplitSharedBytes(const SplitPlan& plan, int teams);

// Products of m16n8k16 for a warp's item.
int SplitItemProducts(const SplitPlan& plan);

// The model by which plans are chosen, in cycles of one multiprocessor. An item
// costs its products and the words that it loads from shared memory; a team
// that works alone waits for latencies, which other teams hide; and the
// multiprocessor's share of device memory carries what comes in and goes out.
// The constants are a Hopper's, rounded; only their proportions matter.
class SplitCost {
 public:
  SplitCost(const SplitPlan& plan, const DeviceLimits& limits);

  // The cost of all tiles, by `teams` teams of `warps` warps in each block.
  double Total(int warps, int teams) const;

 private:
  // Cycles of a quarter of a multiprocessor: of a product, of a load of 128
  // bytes, and of an item's plane; and the factor for loops that are not
  // unrolled.
  static constexpr double kProduct = 6.5;
  static constexpr double kLoad = 1.5;
  static constexpr double kPlane = 50;
  static constexpr double kNotUnrolled = 1.2;
  // Cycles of a value in or out: of instructions, and of memory at 4.3 TB/s;
  // and the factor for stores of parts of lines.
  static constexpr double kCopy = 0.06;
  static constexpr double kMemory = 0.22;
  static constexpr double kPartLines = 3;
  // A team alone: the factor of one warp against several, and the cycles that a
  // batch of loads and a phase wait.
  static constexpr double kLatency = 1.5;
  static constexpr double kLoadTime = 1200;
  static constexpr double kPhaseTime = 400;
  static constexpr double kInFlight = 32 * 24;  // values, of a warp

  const SplitPlan& plan_;
  const int multiprocessors_;
  double item_, in_, out_, memory_;
};

// Finds the plan of the least cost; false if the channels of the smallest tile
// do not fit into shared memory or the filter is larger than
// kSplitMostKernelSize.
bool MakeSplitPlan(const Problem& problem, const DeviceLimits& limits,
                   SplitPlan* plan);

// For KernelVariant::estimate_ns: nanoseconds of the cheapest plan, or negative
// if there is none.
double EstimateSplitNs(const Problem& problem, const DeviceLimits& limits);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_SPLIT_PLAN_H_
