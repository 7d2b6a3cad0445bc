// How wgmma_strips divides a convolution into items; wgmma_strips.cu explains
// the terms. Free of CUDA, so that plans are tested without a GPU.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_PLAN_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// The sizes that a kernel is compiled for. A slice is the part of the depth
// whose inputs are in registers at a time.
struct WgmmaStripsShape {
  int steps;       // in a slice
  bool wide;       // a step is 16 halves of one row instead of 8 of two
  int shifts;      // output columns of a unit: 2, 4 or 8
  int rows;        // output rows of a unit
  int octets;      // groups of 8 columns of the product
  int warpgroups;  // at most, in a block of threads
  bool one_slice;  // a tile has one: the shape takes one channel

  constexpr int filters() const { return 8 * octets / (shifts * rows); }
  constexpr int threads() const { return 128 * warpgroups; }
  // Input rows of a slice, and halves of an input row that a unit is computed
  // from.
  constexpr int slice_rows() const { return wide ? steps : 2 * steps; }
  constexpr int halves() const { return wide ? 16 : 8; }
  // Steps whose large products share a sum on the tensor cores, which cut off
  // bits of a sum with each: in general, and if filters are of one sign. Steps
  // of 6 and 7 rows have 12 and 14 taps, others 10 or less.
  constexpr int run() const { return 2; }
  constexpr int run_of_one_sign() const { return !wide && steps > 3 ? 1 : 2; }
  // Slices of a channel, or 0 if the shape does not take the filter's size.
  constexpr int Slices(int K) const {
    if (K + shifts - 1 > halves()) return 0;
    if (!wide) return (K + rows) / 2 == steps ? 1 : 0;
    return K > 7 ? (K + rows - 1 + steps - 1) / steps : 0;
  }
};

// The builders of the table below. With four warpgroups a thread has 128
// registers, with three 168. From the second slice on, sums take a second set
// of them while the low halves are held: for that 128 are too few.
constexpr WgmmaStripsShape RowPairs(int steps, int shifts, int rows,
                                    int octets) {
  return {steps,
          /*wide=*/false,
          shifts,
          rows,
          octets,
          /*warpgroups=*/4,
          /*one_slice=*/true};
}
constexpr WgmmaStripsShape Channels(int steps, int shifts, int rows,
                                    int octets) {
  return {steps,
          /*wide=*/false,
          shifts,
          rows,
          octets,
          /*warpgroups=*/3,
          /*one_slice=*/false};
}
constexpr WgmmaStripsShape WideSteps(int steps, int shifts, int rows,
                                     int octets) {
  return {steps,
          /*wide=*/true,
          shifts,
          rows,
          octets,
          /*warpgroups=*/3,
          /*one_slice=*/false};
}

// The rows of a product take 16 cycles to come from the registers, however many
// columns it has. So it has 48 or more columns, and fewer only where there are
// few filters. With more rows in a unit, less of the depth is padding; with
// fewer columns, less of an image's last tile is empty.
constexpr WgmmaStripsShape kWgmmaStripsShapes[] = {
    RowPairs(/*steps=*/2, /*shifts=*/4, /*rows=*/2, /*octets=*/6),
    RowPairs(/*steps=*/2, /*shifts=*/4, /*rows=*/2, /*octets=*/12),
    RowPairs(/*steps=*/3, /*shifts=*/4, /*rows=*/2, /*octets=*/6),
    RowPairs(/*steps=*/3, /*shifts=*/4, /*rows=*/2, /*octets=*/10),
    RowPairs(/*steps=*/3, /*shifts=*/2, /*rows=*/2, /*octets=*/6),
    RowPairs(/*steps=*/4, /*shifts=*/2, /*rows=*/2, /*octets=*/6),
    RowPairs(/*steps=*/5, /*shifts=*/2, /*rows=*/4, /*octets=*/4),
    Channels(/*steps=*/2, /*shifts=*/4, /*rows=*/2, /*octets=*/6),
    Channels(/*steps=*/2, /*shifts=*/4, /*rows=*/2, /*octets=*/12),
    Channels(/*steps=*/3, /*shifts=*/4, /*rows=*/2, /*octets=*/6),
    Channels(/*steps=*/3, /*shifts=*/4, /*rows=*/2, /*octets=*/10),
    Channels(/*steps=*/3, /*shifts=*/2, /*rows=*/2, /*octets=*/6),
    Channels(/*steps=*/4, /*shifts=*/2, /*rows=*/2, /*octets=*/6),
    Channels(/*steps=*/5, /*shifts=*/2, /*rows=*/4, /*octets=*/4),
    WideSteps(/*steps=*/3, /*shifts=*/8, /*rows=*/1, /*octets=*/12),
};
constexpr int kWgmmaStripsShapeCount =
    sizeof(kWgmmaStripsShapes) / sizeof(WgmmaStripsShape);

constexpr int kWgmmaStripsLeastKernelSize = 2;
constexpr int kWgmmaStripsMostKernelSize = 9;
// Steps of all channels without those that only shifts need: as far as the
// accuracy has been searched. Before sums ended with a run of steps, a constant
// image with one bright pixel broke the contract of class fp32 with 12.
constexpr int kWgmmaStripsMostSteps = 9;
constexpr int WgmmaStripsMostChannels(int K) {
  return kWgmmaStripsMostSteps / (K <= 7 ? K / 2 + 1 : K);
}
// A warpgroup that is alone would wait while its outputs are stored.
constexpr int kWgmmaStripsLeastWarpgroups = 2;
constexpr int kWgmmaStripsUnits = 64;  // in a tile: the rows of a product

// Sizes are in words of 4 bytes unless stated.
struct WgmmaStripsPlan {
  int64_t batch;
  int C, H, W, M, K, H_out, W_out;
  int shape;   // of kWgmmaStripsShapes
  int slices;  // of a channel
  // A strip is strip_rows output rows; `units` units stand side by side in it.
  // An image has `strips` strips.
  int strip_rows, units, strips;
  // The groups of filters. An item, which a warpgroup computes, is a strip and
  // one of `parts` parts of the groups, with part_groups groups.
  int filter_groups, parts, part_groups;
  int group_bytes;     // of a group's arranged high halves, and of its low ones
  int exponent_words;  // of the filters' scales, also those that fill groups
  // A slab has slab_words words of high halves and as many of low ones: the
  // planes of the channels, plane_words apart, in rows of `pitch` words.
  int pitch, plane_words, slab_words;
  // The next strip's inputs as they come: the planes of the channels, raw_plane
  // apart.
  int raw_plane, raw_words;
  // The stage holds one group's outputs, [filter][row][column].
  int stage_pitch, stage_words;
  uint32_t units_magic, pitch_magic;  // DivisionMagic of both
  int warpgroups;                     // in a block of threads
  int workers;                        // warpgroups among which items are dealt
  int shared_bytes;
  Epilogue epilogue;  // pooling of 2 x 2, or none
  // Where the images in memory stand in the problem's, which have zeros around
  // them if it is padded().
  Inset inset;
  // Whether the inputs may be what the kernel before computes, during which
  // this one begins.
  bool follows_inputs;

  constexpr int64_t items() const { return batch * strips * parts; }
  constexpr bool padded() const {
    return inset.height != H || inset.width != W;
  }
  // Inputs of a channel in memory.
  constexpr int area() const { return inset.height * inset.width; }
  constexpr int filter_bytes() const { return 2 * filter_groups * group_bytes; }
  // Shared memory of one warpgroup; a multiple of 32.
  constexpr int warpgroup_words() const {
    return stage_words + raw_words + 2 * slab_words;
  }
};

// Makes the plan with the given shape, strips of strip_rows rows (rounded up to
// the shape's, at most as many as the image has), `parts` (at most as many as
// there are groups), and with as many warpgroups as fit into shared memory and
// have items. Returns false if the shape does not take the problem or has no
// windows of the epilogue, which halving.h accepts, or if fewer than
// kWgmmaStripsLeastWarpgroups fit.
bool SetWgmmaStripsPlan(const Problem& problem, int shape, int strip_rows,
                        int parts, const DeviceLimits& limits,
                        WgmmaStripsPlan* plan, const Epilogue& epilogue = {});

// The model that chooses between plans: cycles of a multiprocessor for all of
// its items. Three things overlap, and the longest counts most: the traffic of
// shared memory, the latencies of one warpgroup, and memory. The constants were
// fitted to plans that were measured on an H200. Of 106 for the course's layers
// the cheapest came within 2 % of the fastest; the cost of a slice was fitted
// to 77 of several channels or 9 rows, where it came within 13 %. With an
// epilogue a quarter of the outputs counts.
double WgmmaStripsCost(const WgmmaStripsPlan& plan, const DeviceLimits& limits);

// Makes the plan of least cost; false if there is none.
bool MakeWgmmaStripsPlan(const Problem& problem, const DeviceLimits& limits,
                         WgmmaStripsPlan* plan, const Epilogue& epilogue = {});

// For KernelVariant::estimate_ns: nanoseconds of the cheapest plan, or negative
// if there is none.
double EstimateWgmmaStripsNs(const Problem& problem,
                             const DeviceLimits& limits);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_PLAN_H_
