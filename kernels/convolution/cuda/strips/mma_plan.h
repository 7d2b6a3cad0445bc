// How tensor_strips divides a convolution into items; tensor_strips.cu explains
// the terms. Free of CUDA, so that plans are tested without a GPU.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_MMA_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_MMA_PLAN_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/filter_layout.h"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

constexpr int kStripsLeastKernelSize = 3;
constexpr int kStripsMostKernelSize = 11;
// Steps of all channels: as far as the accuracy has been searched. Before sums
// ended with a run of steps, positive inputs, one of them far brighter, and
// positive weights broke the contract of class fp32 with 32.
constexpr int kStripsMostSteps = 18;

// Steps of a channel: one for two filter rows if 8 halves hold a row and at
// least one shift, or else one, of 16 halves, for each row.
constexpr int StripsSteps(int K) {
  return K <= 7 ? (K + 1) / 2 : K <= 9 ? 9 : 11;
}

// The sizes that a kernel is compiled for.
struct StripsShape {
  int steps;         // of a channel
  bool wide;         // a step is 16 halves of one row instead of 8 of two
  bool one_channel;  // if so, a group's filters stay in registers
  int shifts;        // output columns of a unit: 2, 4 or 8
  int rows;          // of outputs, in a band; even
  int tiles_n;       // of a group of filters, each 8 columns of the product
  int loads;         // words of 32 lanes that a warp loads ahead
  // Filters have an odd number of rows, of which the last step has the last one
  // alone, in products half as deep.
  bool odd;

  constexpr int filters() const { return 8 * tiles_n / shifts; }
  // For an octet and a channel: products, 16-byte vectors of filters that a
  // lane loads, and input rows.
  constexpr int products() const { return 3 * filter_vectors() * rows / 2; }
  constexpr int filter_vectors() const { return steps * tiles_n; }
  constexpr int input_rows() const {
    return rows - 1 + (wide ? steps : 2 * steps);
  }
  // Steps whose large products share a sum on the tensor cores, which cut off
  // bits of a sum with each: in general, and if filters are of one sign. Steps
  // of 7 rows have 14 taps, others 12 or less. With several channels such steps
  // have sums of their own for all filters.
  constexpr int run() const { return one_channel ? 2 : run_of_one_sign(); }
  constexpr int run_of_one_sign() const { return !wide && steps > 3 ? 1 : 2; }
  // Halves of an input row that a unit is computed from.
  constexpr int halves() const { return wide ? 16 : 8; }
  // Whether it has a kernel that pools: where writing the outputs counts most.
  constexpr bool pools() const { return one_channel; }
  constexpr bool Takes(int channels, int K) const {
    return steps == StripsSteps(K) && K + shifts - 1 <= halves() &&
           (wide || one_channel == (channels == 1)) && (!odd || K % 2 == 1);
  }
};

// The builders of the table below. Rows: the sums of an octet, and the output
// columns of a unit. The others add the kind of steps, and their number.
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
constexpr StripsShape OneChannelOdd(int steps, StripsShape shape, int loads) {
  shape = OneChannel(steps, shape, loads);
  shape.odd = true;
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
// their sums; there are as many loads ahead as then fit. Of two shapes that
// differ in `odd` alone the first is taken.
constexpr StripsShape kStripsShapes[] = {
    OneChannel(/*steps=*/2, Rows(6, /*tiles_n=*/2, /*shifts=*/4), /*loads=*/13),
    OneChannel(/*steps=*/2, Rows(4, /*tiles_n=*/3, /*shifts=*/4), /*loads=*/12),
    OneChannel(/*steps=*/2, Rows(8, /*tiles_n=*/1, /*shifts=*/4), /*loads=*/19),
    OneChannelOdd(/*steps=*/3, Rows(6, /*tiles_n=*/2, /*shifts=*/4),
                  /*loads=*/13),
    OneChannelOdd(/*steps=*/3, Rows(4, /*tiles_n=*/3, /*shifts=*/4),
                  /*loads=*/14),
    OneChannelOdd(/*steps=*/3, Rows(8, /*tiles_n=*/1, /*shifts=*/2),
                  /*loads=*/19),
    OneChannel(/*steps=*/3, Rows(6, /*tiles_n=*/2, /*shifts=*/4), /*loads=*/13),
    OneChannel(/*steps=*/3, Rows(4, /*tiles_n=*/3, /*shifts=*/4), /*loads=*/14),
    OneChannel(/*steps=*/3, Rows(8, /*tiles_n=*/1, /*shifts=*/2), /*loads=*/19),
    OneChannelOdd(/*steps=*/4, Rows(6, /*tiles_n=*/1, /*shifts=*/2),
                  /*loads=*/21),
    OneChannelOdd(/*steps=*/4, Rows(8, /*tiles_n=*/1, /*shifts=*/2),
                  /*loads=*/19),
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

// Warps of a block of threads: three, or one, for each of a multiprocessor's
// four schedulers.
constexpr int kStripsMostWarps = 12;
constexpr int kStripsLeastWarps = 4;

// Sizes are in words of 4 bytes unless stated.
struct StripsPlan {
  int64_t batch;
  int C, H, W, M, K, H_out, W_out;
  int shape;  // of kStripsShapes
  // A strip is `bands` bands, of the shape's rows and over all columns, which
  // are `units` units each; an image has `strips` strips.
  int bands, strips, units;
  // The groups of filters, and the 16-byte vectors of each. An item, which a
  // warp computes, is a strip and one of `parts` parts of the groups, with
  // part_groups groups.
  int filter_groups, filter_vectors;
  int parts, part_groups;
  // A slab has slab_words words of high halves and as many of low ones: the
  // planes of the channels, in rows of `pitch` words.
  int pitch, slab_words;
  // The stage holds one group's outputs, [filter][row][column].
  int stage_pitch, stage_words;
  uint32_t units_magic, pitch_magic;  // DivisionMagic of both
  int warps;                          // in a block of threads
  int shared_bytes;
  // Blocks of threads, and the items of each; the last has what is left.
  int thread_blocks;
  int64_t block_items;
  // The distance of the channels' planes in a slab.
  int plane_words;
  uint32_t plane_magic;  // DoubledMagic
  // Where the images in memory stand in the problem's, which have zeros around
  // them if it is padded().
  Inset inset;
  uint32_t zero;      // 0, which the compiler must not know
  Epilogue epilogue;  // pooling of 2 x 2, or none
  // Words of inputs in a row in memory, and in a channel's rows of a slab. If
  // the images' width is odd they stand as in the slab, so that the first word
  // of a row may lack its first input.
  int inset_pitch, inset_plane_words;
  uint32_t inset_pitch_magic, inset_plane_magic;  // DoubledMagic of both

  constexpr int strip_rows() const { return bands * kStripsShapes[shape].rows; }
  constexpr int64_t items() const { return batch * strips * parts; }
  constexpr bool padded() const {
    return inset.height != H || inset.width != W;
  }
  // Inputs of a channel in memory.
  constexpr int area() const { return inset.height * inset.width; }
  // Whether pairs of inputs are shifted by one against a slab's words.
  constexpr bool shifted() const {
    return inset.left % 2 != 0 && inset.width % 2 == 0;
  }
  constexpr int filter_words() const {
    return filter_groups * filter_vectors * 4;
  }
  // What else all warps of a block share: StripsBlock, and the exponents of
  // the filters' scales, also of those that fill groups.
  constexpr int block_words() const {
    return 8 + filter_groups * kStripsShapes[shape].filters();
  }
  // Shared memory of one warp; a multiple of 8.
  constexpr int warp_words() const { return stage_words + 2 * slab_words; }
};

FilterLayout LayoutOf(const StripsPlan& plan);

// Makes the plan with the given shape, `bands` (at most as many as the image
// has) and `parts` (at most as many as there are groups of filters), and with
// as many warps as fit into shared memory and have items. Returns false if the
// shape does not take the problem or the epilogue, which halving.h accepts, or
// if fewer than kStripsLeastWarps fit.
bool SetStripsPlan(const Problem& problem, int shape, int bands, int parts,
                   const DeviceLimits& limits, StripsPlan* plan,
                   const Epilogue& epilogue = {});

// Makes it the plan of images that stand so in the problem's.
void UseStripsInset(const Inset& inset, StripsPlan* plan);

// The model that chooses between plans: cycles of a multiprocessor for all of
// its items. Three things overlap, and the longest counts most: the
// instructions that are issued, the latencies of one warp, and memory. The
// constants were fitted to plans that were measured on an H200. Of 73 for one
// channel the cheapest came within 2 % of the fastest; of 465 for several
// channels and larger filters it came within 9 %. With an epilogue a quarter of
// the outputs counts.
double StripsCost(const StripsPlan& plan, const DeviceLimits& limits);

// Makes the plan of least cost; false if there is none.
bool MakeStripsPlan(const Problem& problem, const DeviceLimits& limits,
                    StripsPlan* plan, const Epilogue& epilogue = {});

// For KernelVariant::estimate_ns: nanoseconds of the cheapest plan, or negative
// if there is none.
double EstimateStripsNs(const Problem& problem, const DeviceLimits& limits);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_MMA_PLAN_H_
