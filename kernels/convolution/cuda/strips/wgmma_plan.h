// How wgmma_strips cuts a convolution; wgmma_strips.cu says what the pieces
// are. No CUDA in here, so that the plans are tested without.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_PLAN_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// What a kernel was compiled for.
struct WgmmaStripsShape {
  int steps;       // of a pass
  bool wide;       // a step is 16 halves of one row instead of 8 of two
  int shifts;      // output columns of a unit: 2, 4 or 8
  int rows;        // and its output rows
  int octets;      // of the product's columns, of a group of filters
  int warpgroups;  // at most, of a block of threads

  constexpr int filters() const { return 8 * octets / (shifts * rows); }
  constexpr int threads() const { return 128 * warpgroups; }
  // Input rows of a pass, and halves of a row that a unit meets.
  constexpr int pass_rows() const { return wide ? steps : 2 * steps; }
  constexpr int halves() const { return wide ? 16 : 8; }
  // Passes of a channel, or 0 if the filter's size is not for the shape.
  constexpr int Passes(int K) const {
    if (K + shifts - 1 > halves()) return 0;
    if (!wide) return (K + rows) / 2 == steps ? 1 : 0;
    return K > 7 ? (K + rows - 1 + steps - 1) / steps : 0;
  }
};

// Four warpgroups, which leave a thread 128 registers, or three.
constexpr WgmmaStripsShape RowPairs(int steps, int shifts, int rows,
                                    int octets) {
  return {steps, /*wide=*/false, shifts, rows, octets, /*warpgroups=*/4};
}
constexpr WgmmaStripsShape WideSteps(int steps, int shifts, int rows,
                                     int octets) {
  return {steps, /*wide=*/true, shifts, rows, octets, /*warpgroups=*/3};
}

// A product's rows take 16 cycles to come from the registers, whatever its
// columns' number, so that it has 48 or more; fewer if there are few filters.
// The more rows a unit has, the fewer of the depth's rows are padding; the
// fewer columns it has, the fewer units are missing in an image's last tile.
constexpr WgmmaStripsShape kWgmmaStripsShapes[] = {
    RowPairs(/*steps=*/2, /*shifts=*/4, /*rows=*/2, /*octets=*/6),
    RowPairs(/*steps=*/2, /*shifts=*/4, /*rows=*/2, /*octets=*/12),
    RowPairs(/*steps=*/3, /*shifts=*/4, /*rows=*/2, /*octets=*/6),
    RowPairs(/*steps=*/3, /*shifts=*/4, /*rows=*/2, /*octets=*/10),
    RowPairs(/*steps=*/3, /*shifts=*/2, /*rows=*/2, /*octets=*/6),
    RowPairs(/*steps=*/4, /*shifts=*/2, /*rows=*/2, /*octets=*/6),
    RowPairs(/*steps=*/5, /*shifts=*/2, /*rows=*/4, /*octets=*/4),
    WideSteps(/*steps=*/3, /*shifts=*/8, /*rows=*/1, /*octets=*/12),
};
constexpr int kWgmmaStripsShapeCount =
    sizeof(kWgmmaStripsShapes) / sizeof(WgmmaStripsShape);

constexpr int kWgmmaStripsLeastKernelSize = 2;
constexpr int kWgmmaStripsMostKernelSize = 9;
// Sums over the taps of more steps, of all channels, lose too much where tensor
// cores cut bits off.
constexpr int kWgmmaStripsMostSteps = 16;
constexpr int WgmmaStripsMostChannels(int K) {
  return kWgmmaStripsMostSteps / (K <= 7 ? K / 2 + 1 : K);
}
// One alone would wait while its outputs are stored.
constexpr int kWgmmaStripsLeastWarpgroups = 2;
constexpr int kWgmmaStripsUnits = 64;  // of a tile: the rows of a product

// In words of 4 bytes unless stated.
struct WgmmaStripsPlan {
  int64_t batch;
  int C, H, W, M, K, H_out, W_out;
  int shape;   // of kWgmmaStripsShapes
  int passes;  // of a channel
  // A strip is strip_rows output rows, and units of the shape's rows and
  // shifts: so many in a row of them. An image has so many strips.
  int strip_rows, units, strips;
  // Of shape.filters() filters; an item, which a warpgroup computes, is a strip
  // and part_groups of the groups.
  int filter_groups, parts, part_groups;
  int group_bytes;  // of arranged filters, high halves; low ones the same
  // A strip's high halves, and its low ones: planes of the channels,
  // plane_words apart, in rows of `pitch` words.
  int pitch, plane_words, image_words;
  // Of a strip's inputs as they came, brought ahead: planes of the channels,
  // raw_plane apart.
  int raw_plane, raw_words;
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
                        int parts, const DeviceLimits& limits,
                        WgmmaStripsPlan* plan);

// The model by which plans are chosen: cycles of all items. Three things go on
// at once, of which the longest counts most: shared memory's traffic, one
// warpgroup's latencies, and the output's way to memory. The constants were
// fitted to plans that were measured on an H200: to 106 of the course's layers,
// of which the cheapest came within 2 % of the fastest, and a pass's to 77 of
// several channels or 9 rows, where it came within 13 %.
double WgmmaStripsCost(const WgmmaStripsPlan& plan, const DeviceLimits& limits);

// The cheapest plan, or false if there is none.
bool MakeWgmmaStripsPlan(const Problem& problem, const DeviceLimits& limits,
                         WgmmaStripsPlan* plan);

// For KernelVariant::estimate_ns: nanoseconds of the cheapest plan, or negative
// if there is none.
double EstimateWgmmaStripsNs(const Problem& problem,
                             const DeviceLimits& limits);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_PLAN_H_
