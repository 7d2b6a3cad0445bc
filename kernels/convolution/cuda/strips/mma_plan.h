// How tensor_strips cuts a convolution; tensor_strips.cu says what the pieces
// are. No CUDA in here, so that the plans are tested without.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_MMA_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_MMA_PLAN_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/filter_layout.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

constexpr int kStripsLeastKernelSize = 3;
constexpr int kStripsMostKernelSize = 11;
// Sums of more steps, of all channels, lose too much where tensor cores cut
// bits off.
constexpr int kStripsMostSteps = 32;

// Steps of a channel: two filter rows are one if a chunk of 8 halves holds a
// row and a shift at least, or else one is one, of 16 halves.
constexpr int StripsSteps(int K) {
  return K <= 7 ? (K + 1) / 2 : K <= 9 ? 9 : 11;
}

// What a kernel was compiled for.
struct StripsShape {
  int steps;         // of a channel
  bool wide;         // a step is 16 halves of one row instead of 8 of two
  bool one_channel;  // no others, and a group's filters stay in registers
  int shifts;        // output columns of a unit: 2, 4 or 8
  int rows;          // of outputs, of a block; even
  int tiles_n;       // of a group of filters, each 8 columns of the product
  int loads;         // words of 32 lanes that a warp loads ahead

  constexpr int filters() const { return 8 * tiles_n / shifts; }
  // Of an octet and a channel: products, 16-byte vectors of filters for a lane,
  // and input rows.
  constexpr int products() const { return 3 * filter_vectors() * rows / 2; }
  constexpr int filter_vectors() const { return steps * tiles_n; }
  constexpr int input_rows() const {
    return rows - 1 + (wide ? steps : 2 * steps);
  }
  // Halves of a row that a unit meets.
  constexpr int halves() const { return wide ? 16 : 8; }
  constexpr bool Takes(int channels, int K) const {
    return steps == StripsSteps(K) && K + shifts - 1 <= halves() &&
           (wide || one_channel == (channels == 1));
  }
};

// The sums of a shape, and how many output columns a unit has.
constexpr StripsShape Rows(int rows, int tiles_n, int shifts) {
  StripsShape shape = {};
  shape.rows = rows, shape.tiles_n = tiles_n, shape.shifts = shifts;
  return shape;
}
constexpr StripsShape OneChannel(int steps, StripsShape shape, int loads) {
  shape.steps = steps, shape.loads = loads;
  shape.one_channel = true;
  return shape;
}
constexpr StripsShape Channels(int steps, StripsShape shape, int loads) {
  shape.steps = steps, shape.loads = loads;
  return shape;
}
constexpr StripsShape Wide(int steps, StripsShape shape, int loads) {
  shape.steps = steps, shape.loads = loads;
  shape.wide = true;
  return shape;
}

// More rows and tiles use loaded operands more often, and need registers for
// their sums; there are as many loads ahead as then fit.
constexpr StripsShape kStripsShapes[] = {
    OneChannel(/*steps=*/2, Rows(6, /*tiles_n=*/2, /*shifts=*/4), /*loads=*/13),
    OneChannel(/*steps=*/2, Rows(4, /*tiles_n=*/3, /*shifts=*/4), /*loads=*/12),
    OneChannel(/*steps=*/2, Rows(8, /*tiles_n=*/1, /*shifts=*/4), /*loads=*/19),
    OneChannel(/*steps=*/3, Rows(6, /*tiles_n=*/2, /*shifts=*/4), /*loads=*/13),
    OneChannel(/*steps=*/3, Rows(4, /*tiles_n=*/3, /*shifts=*/4), /*loads=*/14),
    OneChannel(/*steps=*/3, Rows(8, /*tiles_n=*/1, /*shifts=*/2), /*loads=*/19),
    OneChannel(/*steps=*/4, Rows(6, /*tiles_n=*/1, /*shifts=*/2), /*loads=*/21),
    OneChannel(/*steps=*/4, Rows(8, /*tiles_n=*/1, /*shifts=*/2), /*loads=*/19),
    Channels(/*steps=*/2, Rows(6, /*tiles_n=*/2, /*shifts=*/4), /*loads=*/13),
    Channels(/*steps=*/3, Rows(6, /*tiles_n=*/2, /*shifts=*/4), /*loads=*/10),
    Channels(/*steps=*/3, Rows(8, /*tiles_n=*/1, /*shifts=*/4), /*loads=*/19),
    Channels(/*steps=*/3, Rows(8, /*tiles_n=*/1, /*shifts=*/2), /*loads=*/19),
    Channels(/*steps=*/4, Rows(6, /*tiles_n=*/1, /*shifts=*/2), /*loads=*/19),
    Channels(/*steps=*/4, Rows(8, /*tiles_n=*/1, /*shifts=*/2), /*loads=*/18),
    Wide(/*steps=*/9, Rows(4, /*tiles_n=*/2, /*shifts=*/8), /*loads=*/16),
    Wide(/*steps=*/11, Rows(6, /*tiles_n=*/2, /*shifts=*/4), /*loads=*/5),
};
constexpr int kStripsShapeCount = sizeof(kStripsShapes) / sizeof(StripsShape);

// Of a block of threads, three or one for each quarter of a multiprocessor.
constexpr int kStripsMostWarps = 12;
constexpr int kStripsLeastWarps = 4;

// In words of 4 bytes unless stated.
struct StripsPlan {
  int64_t batch;
  int C, H, W, M, K, H_out, W_out;
  int shape;  // of kStripsShapes
  // A strip is `blocks` blocks of the shape's rows over all columns, which are
  // `units` units; an image has `strips`.
  int blocks, strips, units;
  // Groups of the shape's tiles_n tiles, and 16-byte vectors in each. An item,
  // which a warp computes, is a strip and part_groups of the groups.
  int filter_groups, filter_vectors;
  int parts, part_groups;
  // A strip's high halves, and its low ones: planes of the channels, in rows of
  // `pitch` words.
  int pitch, image_words;
  // Of one group's outputs, [filter][row][column].
  int stage_pitch, stage_words;
  uint32_t units_magic, pitch_magic;  // for SplitDivide
  int warps;                          // of a block of threads
  int shared_bytes;
  // Blocks of threads, and the items of each but the last, which has the rest.
  int thread_blocks;
  int64_t block_items;
  // Words of a channel's plane, from which the next one's begin.
  int plane_words;
  uint32_t plane_magic;
  uint32_t zero;  // 0, which the compiler does not know

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
                   const DeviceLimits& limits, StripsPlan* plan);

// The model by which plans are chosen: cycles of all items. Three things go on
// at once, of which the longest counts most: instructions issued, one warp's
// latencies, and the output's way to memory. The constants were fitted to plans
// that were measured on an H200: to 73 for one channel, of which the cheapest
// came within 2 % of the fastest, and to 465 for several channels and for
// larger filters, where it came within 9 %.
double StripsCost(const StripsPlan& plan, const DeviceLimits& limits);

// The cheapest plan, or false if there is none.
bool MakeStripsPlan(const Problem& problem, const DeviceLimits& limits,
                    StripsPlan* plan);

// For KernelVariant::estimate_ns: nanoseconds of the cheapest plan, or negative
// if there is none.
double EstimateStripsNs(const Problem& problem, const DeviceLimits& limits);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_MMA_PLAN_H_
