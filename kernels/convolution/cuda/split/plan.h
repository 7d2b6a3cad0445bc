// How tensor_split cuts a convolution; split_core.cuh says
// what the pieces are. No CUDA in here, so that the plans are tested without.
#ifndef KERNELS_CONVOLUTION_CUDA_SPLIT_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_SPLIT_PLAN_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/filter_layout.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// What a kernel was compiled for.
struct SplitShape {
  int kernel_size;      // 0: any
  int rows;             // of outputs, of a warp's piece; even
  int tiles_n;          // of a warp's piece, each 8 columns of the product
  bool row_pairs;       // two filter rows make a step of the depth
  bool filters_shared;  // in shared memory; otherwise in global memory
  int threads;          // of a block, at most
};

// More rows and tiles reuse what was loaded more often, and need registers for
// their sums. Fewer warps, which may have more registers, where these are many.
constexpr SplitShape kSplitShapes[] = {
    {3, 6, 3, false, true, 256}, {3, 6, 2, false, true, 384},
    {5, 6, 3, false, true, 256}, {5, 6, 2, false, true, 384},
    {7, 6, 3, false, true, 256}, {7, 6, 2, false, true, 384},
    {0, 6, 3, false, true, 256}, {0, 6, 2, false, true, 384},
    {0, 6, 1, false, true, 384}, {0, 6, 2, false, false, 384},
    {3, 6, 3, true, true, 384},  {3, 8, 1, true, true, 384},
    {5, 6, 3, true, true, 384},  {5, 8, 1, true, true, 384},
    {7, 6, 3, true, true, 384},  {7, 8, 1, true, true, 384},
};
constexpr int kSplitShapeCount = sizeof(kSplitShapes) / sizeof(SplitShape);

constexpr int kSplitMostKernelSize = 11;
constexpr int kSplitMostWarps = 8;    // of a group
constexpr int kSplitMostGroups = 15;  // each has a barrier of its own

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
  int strips_y, strips_x;
  int tile_rows, tile_columns;
  int input_rows, input_columns;
  // Of a tile: blocks of the shape's `rows` rows, and units of `shifts`
  // columns.
  int row_blocks, units;
  // A tile's inputs in shared memory.
  int pitch, plane_words, image_words;
  // Copied as one row, since rows follow each other here and there; otherwise
  // element by element of copy_columns columns, or pairs of columns.
  bool linear;
  int copy_columns;
  uint32_t copy_columns_magic, units_magic;  // for SplitDivide
  // Groups of the shape's tiles_n tiles of columns, and 16-byte (or with one
  // product 8-byte) vectors of arranged filters in each.
  int filter_groups, filter_vectors;
  // Groups of warps, and of what a group computes between two barriers.
  int groups, warps;
  int phase_blocks, phase_filter_groups;
  int stage_pitch, stage_floats;
  int shape;  // of kSplitShapes
  int shared_bytes;

  constexpr int64_t tiles() const { return batch * strips_y * strips_x; }
  constexpr int64_t filter_bytes() const {
    return int64_t{filter_vectors} * filter_groups * kSplitVectorBytes;
  }
  // Of one group: largest values, stage, halves.
  constexpr int64_t group_words() const {
    return 8 + int64_t{stage_floats} + int64_t{2} * image_words;
  }
};

// How the kernels of a plan want the filters.
FilterLayout LayoutOf(const SplitPlan& plan);

// The steps of a plan, in their order. First what a shape, channels of a plane
// (1, 2, 4, 6 or 8) and shifts (1, 2, 4 or 8) make of the product; false if
// they do not go together.
bool SetSplitProduct(const Problem& problem, int shape_index,
                     int plane_channels, int shifts, SplitPlan* plan);

// Then the tiles: `row_blocks` blocks of the shape's rows by `tile_columns`
// columns, or the image where that is less. False if a tile needs more shared
// memory than anything has.
bool SetSplitTiles(int row_blocks, int tile_columns, SplitPlan* plan);

// Then the stage: what a phase computes, [filter][row][column]. The distance of
// two filters keeps the lanes of a store on different banks: 2 * pitch = 8 mod
// 32 apart, or pitch = 8.
void SetSplitPhases(int phase_blocks, int phase_filter_groups, SplitPlan* plan);

// Shared memory of a block of `groups` groups.
int64_t SplitSharedBytes(const SplitPlan& plan, int groups);

// Products of m16n8k16 for a warp's piece.
int SplitPieceProducts(const SplitPlan& plan);

// The model by which plans are chosen, in cycles of one multiprocessor. A piece
// costs its products and the words that it loads from shared memory; a group
// that works alone waits for latencies, which other groups hide; and the
// multiprocessor's share of device memory carries what comes in and goes out.
// The constants are a Hopper's, rounded; only their proportions matter.
class SplitCost {
 public:
  SplitCost(const SplitPlan& plan, int multiprocessors);

  // Of all tiles, by groups of `warps` warps, `groups` of them in a block.
  double Total(int warps, int groups) const;

 private:
  static constexpr double kProduct = 6.5;  // of a quarter of a multiprocessor
  static constexpr double kLoad = 1.5;     // of 128 bytes, likewise
  static constexpr double kPlane = 50;     // of a piece, likewise
  static constexpr double kAnySize = 1.2;  // loops that are not unrolled
  static constexpr double kCopy = 0.06;    // of a value in or out
  static constexpr double kMemory = 0.22;  // likewise, at 4.3 TB/s
  static constexpr double kPartLines = 3;  // stores of parts of lines
  static constexpr double kLatency = 1.5;  // one warp against several
  static constexpr double kLoadTime = 1200;
  static constexpr double kPhaseTime = 400;
  static constexpr double kInFlight = 32 * 24;  // of a warp

  const SplitPlan& plan_;
  const int multiprocessors_;
  double piece_, in_, out_, memory_;
};

// The plan for a problem, or false if the channels of the smallest tile do not
// fit into shared memory or the filter is larger than kSplitMostKernelSize.
bool MakeSplitPlan(const Problem& problem, int multiprocessors,
                   int shared_limit, SplitPlan* plan);

// For KernelVariant::estimate_ns: nanoseconds of the cheapest plan, or negative
// if there is none.
double EstimateSplitNs(const Problem& problem, const DeviceLimits& limits);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_SPLIT_PLAN_H_
