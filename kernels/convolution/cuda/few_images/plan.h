// How few_images cuts a convolution; few_images.cu says what the pieces are. No
// CUDA in here, so that the plans are tested without.
#ifndef KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_PLAN_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/filter_layout.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// A thread computes 4 filters at 4 neighbouring columns of 1 or 2 rows.
constexpr int kFewFilters = 4;
constexpr int kFewColumns = 4;
constexpr int kFewMostRows = 2;
// Of a block, by the registers that 1 and 2 rows need.
constexpr int kFewMostThreads[kFewMostRows] = {384, 320};

// What a kernel was compiled for. The more it knows, the sooner its first load
// is on the way, which counts where everything takes a few microseconds.
enum class FewScope {
  kOneChannel,   // in one slice; the filter's size is known and unrolled
  kAllChannels,  // of a tile are in shared memory; the filter's size is known
  kAnything,
};

// Filters with kernels of their own, K x K.
constexpr int kFewKernelSizes[] = {3, 5, 7};

// In floats unless stated.
struct FewImagesPlan {
  int C, H, W, M, K, H_out, W_out;
  FewScope scope;
  // The threads stand groups_x * groups_y * groups_m * slices, the first
  // fastest. A thread has `rows` rows, groups_y apart, and goes on to further
  // filters for `rounds` rounds; slices share the rows of the filters.
  int rows, groups_x, groups_y, groups_m, slices, rounds;
  int threads, block_threads;  // that compute; and with those that only copy
  int tile_rows, tile_columns, block_filters;  // of a block's outputs
  int tiles_x, tiles_y, blocks_m;              // of an image; of all filters
  // A tile's inputs, `channels` channels at a time, in rows `pitch` apart.
  int channels, input_rows, input_columns, pitch;
  int slice_rows;  // filter rows of a slice, all channels' counted through
  int filter_floats, input_floats, stage_floats;  // of shared memory
  // For divisions by multiplication, see SplitMagic.
  uint32_t groups_x_magic, groups_y_magic, groups_m_magic;
  uint32_t input_rows_magic, tile_rows_magic, tile_columns_magic;
  // Set by SetFewImagesVectors: floats of x in a copy and of y in a store;
  // copies in a row of a tile, and rows that a block copies at a time.
  int copy_floats, store_floats, copy_columns, copy_rows;
  uint32_t copy_columns_magic;
  int64_t batch;

  constexpr int plane() const { return input_rows * pitch; }
  constexpr int shared_bytes() const {
    return 4 * (filter_floats + input_floats + stage_floats);
  }
  constexpr int64_t blocks() const {
    return batch * tiles_x * tiles_y * blocks_m;
  }
};

// What a plan is chosen by. `groups_m` and `rounds` are of a block.
struct FewImagesCut {
  int rows, groups_y, groups_m, rounds, slices;
};

// What the device has.
struct FewImagesLimits {
  int multiprocessors;
  int shared_per_block, shared_per_multiprocessor;  // bytes
};

// The plan with a cut, or with fewer slices if there are not as many. Vectors
// are set for aligned tensors. False if the cut has more of something than the
// problem, a block or a grid.
bool SetFewImagesPlan(const Problem& problem, const FewImagesCut& cut,
                      const FewImagesLimits& limits, FewImagesPlan* plan);

// Sets how x and y are read and written, by what divides their rows and their
// addresses.
void SetFewImagesVectors(const void* x, const void* y, FewImagesPlan* plan);

// The model by which plans are chosen: cycles from the first block's start to
// the last one's end. A multiprocessor issues the instructions of all its
// blocks, and each of them has its latencies, one after another for blocks that
// do not fit at the same time. The constants were fitted to 8,000 plans of the
// course's layers for 1 to 100 images, measured on an H200; the cheapest came
// within 2 % of the fastest on average, and within 12 % always.
double FewImagesCost(const FewImagesPlan& plan, const FewImagesLimits& limits);

// The cheapest plan, or false if there is none.
bool MakeFewImagesPlan(const Problem& problem, const FewImagesLimits& limits,
                       FewImagesPlan* plan);

// One channel, with many times more work than multiprocessors: all work stands
// in one line, and every block takes an equally long piece of it.
//
// An item is what a thread computes at a time: 4 filters at 4 neighbouring
// columns. A tile is whole rows of an image. The line has an image's tiles one
// after another, a tile's groups of 4 filters, and a group's positions,
// groups_x by groups_y. In floats unless stated.
struct LinePlan {
  int H, W, M, K, H_out, W_out;
  int groups_x, groups_y;  // columns and rows of a tile
  int tiles_y;             // of an image
  int input_rows, pitch;   // of a tile's inputs, in rows `pitch` apart
  int positions, groups;   // items of a group; groups of a tile
  int items, block_items;  // of everything; of a block
  // What a block has room for: it meets so many tiles, and groups of filters.
  int block_tiles, block_groups;
  int threads;
  // For divisions by multiplication, see SplitMagic.
  uint32_t positions_magic, tile_items_magic, groups_x_magic, tiles_y_magic;
  uint32_t input_rows_magic;
  // Set by SetLineVectors: floats of x in a copy and of y in a store;
  // copies in a row of a tile.
  int copy_floats, store_floats, copy_columns;
  uint32_t copy_columns_magic;

  constexpr int tile_items() const { return groups * positions; }
  constexpr int plane() const { return input_rows * pitch; }
  constexpr int filter_floats() const {
    return block_groups * kFewFilters * K * K;
  }
  // With what the last lane's last vector has beyond the last row.
  constexpr int input_floats() const {
    return block_tiles * plane() + static_cast<int>(SplitParts(K, 4)) * 4 + 4;
  }
  constexpr int shared_bytes() const {
    return 4 * (filter_floats() + input_floats());
  }
  constexpr int blocks() const { return SplitParts(items, block_items); }
};

constexpr int kLineMostThreads = 512;  // of a block

struct LineCut {
  int groups_y, threads, rounds;
};

// As for FewImagesPlan. There is no plan for several channels, nor for filters
// without a kernel of their own; and none is made where there is too little
// work. The constants were fitted to 4,800 plans of the first layers for 32 to
// 100 images; the cheapest came within 1.3 % of the fastest on average, and
// within 3 % always.
bool SetLinePlan(const Problem& problem, const LineCut& cut,
                 const FewImagesLimits& limits, LinePlan* plan);
void SetLineVectors(const void* x, const void* y, LinePlan* plan);
double LineCost(const LinePlan& plan, const FewImagesLimits& limits);
bool MakeLinePlan(const Problem& problem, const FewImagesLimits& limits,
                  LinePlan* plan);

// For KernelVariant::estimate_ns: nanoseconds of the cheapest plan, or negative
// if there is none.
double EstimateFewImagesNs(const Problem& problem, const DeviceLimits& limits);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_PLAN_H_
