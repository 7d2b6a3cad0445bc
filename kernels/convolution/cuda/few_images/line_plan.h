// How few_images cuts many images of one channel: all work stands in one line,
// of which every block of threads takes an equally long part; line_kernel.cuh
// is the kernel. No CUDA in here, so that plans are tested without.
#ifndef KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_LINE_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_LINE_PLAN_H_

#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/few_images/item.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// Items have one row. A tile is some whole rows of an image. The line has an
// image's tiles one after another, a tile's groups of 4 filters, and a group's
// positions, groups_x by groups_y. In floats unless stated.
struct LinePlan {
  int H, W, M, K, H_out, W_out;
  int groups_x, groups_y;  // items of a tile's row, and rows of a tile
  int tiles_y;             // of an image
  int input_rows, pitch;   // of a tile's inputs, in rows `pitch` floats apart
  int positions, groups;   // items of a group; groups of a tile
  int items, block_items;  // of the line; of a block's part
  // The most tiles, and groups of filters, that a block's part may meet.
  int block_tiles, block_groups;
  int threads;
  // For Divide (lib/division.h).
  uint32_t positions_magic, tile_items_magic, groups_x_magic, tiles_y_magic;
  uint32_t input_rows_magic;
  // Set by SetLineVectors: floats of x in a copy and of y in a store, and
  // copies in a row of a tile.
  int copy_floats, store_floats, copy_columns;
  uint32_t copy_columns_magic;
  // The whole image unless it is `padded`, by SetLineInset.
  Inset inset;
  bool padded;
  Epilogue epilogue;  // one that does not pool

  constexpr int tile_items() const { return groups * positions; }
  constexpr int plane() const { return input_rows * pitch; }
  constexpr int filter_floats() const {
    return block_groups * kFewFilters * K * K;
  }
  // The last lane's last vector reaches beyond the last row.
  constexpr int input_floats() const {
    return block_tiles * plane() + RoundUp(K, 4) + 4;
  }
  constexpr int shared_bytes() const {
    return 4 * (filter_floats() + input_floats());
  }
  constexpr int blocks() const {
    return CeilDivide(int64_t{items}, block_items);
  }
};

constexpr int kLineMostThreads = 512;  // of a block

// `rounds` are a thread's items.
struct LineCut {
  int groups_y, threads, rounds;
};

// These are the counterparts of TilePlan's functions (tile_plan.h). There is no
// plan for several channels, nor for filters without a kernel of their own, and
// MakeLinePlan makes none where there is too little work. The constants of the
// cost were fitted to 4,800 plans of the first layers for 32 to 100 images,
// measured on an H200; the cheapest came within 1.3 % of the fastest on
// average, and within 3 % always.
bool SetLinePlan(const Problem& problem, const LineCut& cut,
                 const DeviceLimits& limits, LinePlan* plan);
void SetLineVectors(const void* x, const void* y, LinePlan* plan);
void SetLineInset(const Inset& inset, LinePlan* plan);
double LineCost(const LinePlan& plan, const DeviceLimits& limits);
bool MakeLinePlan(const Problem& problem, const DeviceLimits& limits,
                  LinePlan* plan);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_LINE_PLAN_H_
