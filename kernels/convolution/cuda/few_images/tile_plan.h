// How few_images cuts a convolution into tiles, with a block of threads for
// each tile and each few filters; tile_kernel.cuh is the kernel. No CUDA in
// here, so that plans are tested without.
#ifndef KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_TILE_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_TILE_PLAN_H_

#include <cstdint>

#include "kernels/convolution/cuda/few_images/item.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// Threads of a block at most, by the registers that 1 and 2 rows need.
constexpr int kFewMostThreads[kFewMostRows] = {384, 320};

// What a kernel was compiled for. The more it knows, the sooner its first load
// is on the way, which counts where everything takes a few microseconds.
enum class FewScope {
  kOneChannel,   // one slice; the filter's size is known and unrolled
  kAllChannels,  // all are in shared memory at once; the filter's size is known
  kAnything,
};

// In floats unless stated.
struct TilePlan {
  int C, H, W, M, K, H_out, W_out;
  FewScope scope;
  // The threads stand as groups_x * groups_y * groups_m * slices, the first
  // fastest. A thread's item has `rows` rows, groups_y apart; the thread goes
  // on to further filters for `rounds` rounds. Slices share the filter rows.
  int rows, groups_x, groups_y, groups_m, slices, rounds;
  int threads;                                 // that compute
  int block_threads;                           // with those that only copy
  int tile_rows, tile_columns, block_filters;  // outputs of a block
  int tiles_x, tiles_y, blocks_m;  // tiles of an image, blocks for all filters
  // A tile's inputs, `channels` channels at a time, in rows `pitch` floats
  // apart.
  int channels, input_rows, input_columns, pitch;
  int slice_rows;  // filter rows of a slice, counted through all channels
  int filter_floats, input_floats, stage_floats;  // of shared memory
  // For Divide (lib/division.h).
  uint32_t groups_x_magic, groups_y_magic, groups_m_magic;
  uint32_t input_rows_magic, tile_rows_magic, tile_columns_magic;
  // Set by SetTileVectors: floats of x in a copy and of y in a store, copies in
  // a row of a tile, and rows that a block copies at a time.
  int copy_floats, store_floats, copy_columns, copy_rows;
  uint32_t copy_columns_magic;
  // The whole image unless it is `padded`, by SetTileInset.
  Inset inset;
  bool padded;
  int64_t batch;
  // Where an epilogue pools, the sums of one slice, too, go to shared memory,
  // where windows are taken, 1 x 1 ones of several slices without pooling:
  // window_rows by window_columns of a tile, and pooled_rows by pooled_columns
  // of an image. Any other epilogue is applied to a thread's own sums.
  Epilogue epilogue;
  MaxPool window;
  int window_rows, window_columns, pooled_rows, pooled_columns;
  uint32_t window_rows_magic, window_columns_magic;

  constexpr int plane() const { return input_rows * pitch; }
  // Whether sums go through shared memory.
  constexpr bool stages() const { return slices > 1 || epilogue.pool.size > 0; }
  constexpr int shared_bytes() const {
    return 4 * (filter_floats + input_floats + stage_floats);
  }
  constexpr int64_t blocks() const {
    return batch * tiles_x * tiles_y * blocks_m;
  }
};

// What decides on a plan for a problem; the fields are the plan's.
struct TileCut {
  int rows, groups_y, groups_m, rounds, slices;
};

// Makes the plan with a cut, or with fewer slices if there are fewer filter
// rows. Vectors are set for aligned tensors. Returns false if the cut exceeds
// the problem, a block or a grid, or if a window of the epilogue does not lie
// within a tile.
bool SetTilePlan(const Problem& problem, const TileCut& cut,
                 const DeviceLimits& limits, TilePlan* plan,
                 const Epilogue& epilogue = {});

// Sets the widths of copies from x and stores to y, which must divide their
// rows and their addresses.
void SetTileVectors(const void* x, const void* y, TilePlan* plan);

// Sets the image that is in memory, inside of the problem's. Then copies are of
// single floats, because rows begin anywhere in those of shared memory.
void SetTileInset(const Inset& inset, TilePlan* plan);

// The model by which plans are chosen: cycles from the first block's start to
// the last one's end. A multiprocessor issues the instructions of all its
// blocks, and each block has its latencies, which add up for blocks that do not
// fit at the same time. The constants were fitted to 8,000 plans of the
// course's layers for 1 to 100 images, measured on an H200; the cheapest came
// within 2 % of the fastest on average, and within 12 % always. Where an
// epilogue pools, a plan of one slice counts as one of several, which also go
// through shared memory.
double TileCost(const TilePlan& plan, const DeviceLimits& limits);

// Finds the plan of the least cost; false if there is none.
bool MakeTilePlan(const Problem& problem, const DeviceLimits& limits,
                  TilePlan* plan, const Epilogue& epilogue = {});

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_TILE_PLAN_H_
