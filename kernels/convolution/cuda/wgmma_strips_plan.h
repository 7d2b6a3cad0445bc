// How wgmma_strips cuts a convolution; wgmma_strips.cu says what the pieces
// are. No CUDA in here, so that the plans are tested without.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_STRIPS_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_STRIPS_PLAN_H_

#include <cstdint>

#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// What a kernel was compiled for.
struct WgmmaStripsShape {
  int steps;       // of two filter rows
  int shifts;      // output columns of a unit: 2 or 4
  int rows;        // and its output rows
  int octets;      // of the product's columns, of a group of filters
  int warpgroups;  // at most, of a block of threads

  constexpr int filters() const { return 8 * octets / (shifts * rows); }
  constexpr int threads() const { return 128 * warpgroups; }
};

// A product's rows take 16 cycles to come from the registers, whatever its
// columns' number, so that it has 48 or more; fewer if there are few filters.
// The more rows a unit has, the fewer of the depth's rows are padding.
constexpr WgmmaStripsShape kWgmmaStripsShapes[] = {
    {2, 4, 2, 6, 4},  {2, 4, 2, 12, 4}, {3, 4, 2, 6, 4}, {3, 4, 2, 10, 4},
    {3, 4, 2, 12, 3}, {4, 2, 2, 6, 4},  {5, 2, 4, 4, 4},
};
constexpr int kWgmmaStripsShapeCount =
    sizeof(kWgmmaStripsShapes) / sizeof(WgmmaStripsShape);

constexpr int kWgmmaStripsLeastKernelSize = 2;
constexpr int kWgmmaStripsMostKernelSize = 7;
// One alone would wait while its outputs are stored.
constexpr int kWgmmaStripsLeastWarpgroups = 2;
constexpr int kWgmmaStripsUnits = 64;  // of a tile: the rows of a product

// In words of 4 bytes unless stated.
struct WgmmaStripsPlan {
  int64_t batch;
  int C, H, W, M, K, H_out, W_out;  // C is 1
  int shape;                        // of kWgmmaStripsShapes
  // A strip is strip_rows output rows, and units of the shape's rows and
  // shifts: so many in a row of them. An image has so many strips.
  int strip_rows, units, strips;
  // Of shape.filters() filters; an item, which a warpgroup computes, is a strip
  // and part_groups of the groups.
  int filter_groups, parts, part_groups;
  int group_bytes;  // of arranged filters, high halves; low ones the same
  // A strip's high halves, and its low ones: rows of `pitch` words.
  int pitch, image_words;
  int raw_words;  // of a strip's inputs as they came, brought ahead
  // Of one group's outputs, [filter][row][column].
  int stage_pitch, stage_words;
  uint32_t units_magic, pitch_magic;  // for SplitDivide
  int warpgroups;                     // of a block of threads
  int walkers;                        // warpgroups among which items are dealt
  int shared_bytes;

  constexpr int64_t items() const { return batch * strips * parts; }
  constexpr int filter_bytes() const { return 2 * filter_groups * group_bytes; }
  // Of one warpgroup; a multiple of 32.
  constexpr int warpgroup_words() const {
    return stage_words + raw_words + 2 * image_words;
  }
};

// The plan with a shape, strips of so many rows (or as many as the image has,
// and a multiple of the shape's), `parts` (or as many as there are groups), and
// as many warpgroups as fit, or as there are items for all multiprocessors.
// False if the shape is not for the filter's size or fewer than
// kWgmmaStripsLeastWarpgroups fit.
bool SetWgmmaStripsPlan(const Problem& problem, int shape, int strip_rows,
                        int parts, int multiprocessors, int shared_limit,
                        WgmmaStripsPlan* plan);

// The model by which plans are chosen: cycles of all items. Three things go on
// at once, of which the longest counts most: shared memory's traffic, one
// warpgroup's latencies, and the output's way to memory. The constants were
// fitted to 106 plans of the course's layers, measured on an H200; the cheapest
// came within 2 % of the fastest.
double WgmmaStripsCost(const WgmmaStripsPlan& plan, int multiprocessors);

// The cheapest plan, or false if there is none.
bool MakeWgmmaStripsPlan(const Problem& problem, int multiprocessors,
                         int shared_limit, WgmmaStripsPlan* plan);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_STRIPS_PLAN_H_
