// How tensor_strips cuts a convolution; tensor_strips.cu says what the pieces
// are. No CUDA in here, so that the plans are tested without.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_PLAN_H_

#include <cstdint>

#include "kernels/convolution/cuda/split_layout.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// What a kernel was compiled for.
struct StripsShape {
  int steps;    // of two filter rows
  int shifts;   // output columns of a unit: 2 or 4
  int rows;     // of outputs, of a block; even
  int tiles_n;  // of a group of filters, each 8 columns of the product
  int loads;    // words of 32 lanes that a warp loads ahead

  constexpr int filters() const { return 8 * tiles_n / shifts; }
  constexpr int products() const { return 3 * steps * tiles_n * rows / 2; }
};

// More rows and tiles use again what was loaded, and need registers for their
// sums; of loads ahead there are as many as then fit.
constexpr StripsShape kStripsShapes[] = {
    {2, 4, 6, 2, 13}, {2, 4, 4, 3, 12}, {2, 4, 8, 1, 19}, {3, 4, 6, 2, 13},
    {3, 4, 4, 3, 14}, {3, 2, 8, 1, 19}, {4, 2, 6, 1, 21}, {4, 2, 8, 1, 19},
};
constexpr int kStripsShapeCount = sizeof(kStripsShapes) / sizeof(StripsShape);

constexpr int kStripsLeastKernelSize = 3;
constexpr int kStripsMostKernelSize = 7;
// Of a block of threads, three or one for each quarter of a multiprocessor.
constexpr int kStripsMostWarps = 12;
constexpr int kStripsLeastWarps = 4;

// In words of 4 bytes unless stated.
struct StripsPlan {
  int64_t batch;
  int C, H, W, M, K, H_out, W_out;  // C is 1
  int shape;                        // of kStripsShapes
  // A strip is `blocks` blocks of the shape's rows over all columns, which are
  // `units` units; an image has `strips`.
  int blocks, strips, units;
  // Groups of the shape's tiles_n tiles, and 16-byte vectors in each. An item,
  // which a warp computes, is a strip and part_groups of the groups.
  int filter_groups, filter_vectors;
  int parts, part_groups;
  // A strip's high halves, and its low ones: rows of `pitch` words.
  int pitch, image_words;
  // Of one group's outputs, [filter][row][column].
  int stage_pitch, stage_words;
  uint32_t units_magic, pitch_magic;  // for SplitDivide
  int warps;                          // of a block of threads
  int shared_bytes;
  // Blocks of threads, and the items of each but the last, which has the rest.
  int thread_blocks;
  int64_t block_items;

  constexpr int strip_rows() const {
    return blocks * kStripsShapes[shape].rows;
  }
  constexpr int64_t items() const { return batch * strips * parts; }
  constexpr int filter_words() const {
    return filter_groups * filter_vectors * 4;
  }
  // Of one warp; a multiple of 8.
  constexpr int warp_words() const { return stage_words + 2 * image_words; }
};

FilterLayout LayoutOf(const StripsPlan& plan);

// The plan with a shape, `blocks` (or as many as the image has) and `parts` (or
// as many as there are groups of filters), and as many warps as fit, or as
// there are items for all multiprocessors. False if the shape is not for the
// filter's size or fewer than kStripsLeastWarps fit.
bool SetStripsPlan(const Problem& problem, int shape, int blocks, int parts,
                   int multiprocessors, int shared_limit, StripsPlan* plan);

// The model by which plans are chosen: cycles of all items. Three things go on
// at once, of which the longest counts most: instructions issued, one warp's
// latencies, and the output's way to memory. The constants were fitted to 73
// plans of the course's layers, measured on an H200; the cheapest came within
// 2 % of the fastest.
double StripsCost(const StripsPlan& plan, int multiprocessors);

// The cheapest plan, or false if there is none.
bool MakeStripsPlan(const Problem& problem, int multiprocessors,
                    int shared_limit, StripsPlan* plan);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_PLAN_H_
