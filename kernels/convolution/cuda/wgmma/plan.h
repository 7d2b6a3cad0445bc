// How tensor_wgmma and wgmma_fp16 cut a convolution; tensor_wgmma.cu says what
// the pieces are. No CUDA in here, so that the plans are tested without.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_PLAN_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/filter_layout.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// What a kernel was compiled for.
struct WgmmaShape {
  int kernel_size;
  int rows;         // of outputs, of a unit
  int octets;       // of filters, of a group
  int vector_rows;  // output rows of one product
  bool wide;        // a pixel's halves fill words of 8 bytes
  int consumers;    // warpgroups that multiply
  int threads;      // of a block
  // Groups of warps that convert, each a slab of its own: what a slab waits for
  // goes on at once.
  int converter_groups;
  // Each slab is one warpgroup's, rather than its tiles dealt to all.
  bool own_slabs;
  // Columns of a unit, 1 or 2: the second is that of the same filters, moved by
  // a pixel. Costs nothing where a filter row's run leaves a pixel of its last
  // step of 16 halves unused.
  int shifts = 1;
  // Outputs go from registers to device memory, without a stage: where there is
  // no room for one. A slab may then begin and end within a block of rows.
  bool direct = false;
  // Of an operand: 2, its high halves and its low ones, for three products; or
  // 1, its values rounded to halves, for one.
  int parts = 2;
  // The small products are added to the sums of the large ones: half the
  // registers, and three times as many products that cut bits off a sum.
  bool one_sum = false;
  // Rows of operands that are loaded before they are multiplied: 2, or 3, where
  // there are registers for it.
  int ahead = 2;

  // This shape with one of the choices above.
  template <typename T>
  constexpr WgmmaShape With(T WgmmaShape::*choice, T value) const {
    WgmmaShape shape = *this;
    shape.*choice = value;
    return shape;
  }
  constexpr WgmmaShape TwoColumns() const {
    return With(&WgmmaShape::shifts, 2);
  }
  constexpr WgmmaShape Direct() const {
    return With(&WgmmaShape::direct, true);
  }
  constexpr WgmmaShape OnePart() const { return With(&WgmmaShape::parts, 1); }
  constexpr WgmmaShape OneSum() const {
    return With(&WgmmaShape::one_sum, true);
  }
  constexpr WgmmaShape ThreeAhead() const {
    return With(&WgmmaShape::ahead, 3);
  }

  constexpr int products() const { return 2 * parts - 1; }
  // Of a ring of `buffers` buffers (WgmmaRing). With slabs of their own a
  // barrier is always the same warpgroup's.
  constexpr int barriers(int buffers) const {
    return own_slabs && buffers % consumers != 0 ? buffers * consumers
                                                 : buffers;
  }
  // What barriers() comes to at most.
  constexpr int most_barriers() const {
    return own_slabs && consumers > 2 ? 12 : 6;
  }
  // Buffers of slabs: of its own a warpgroup has two at most.
  constexpr int most_buffers() const { return own_slabs ? 2 * consumers : 4; }
  // Whether it works with so many buffers of slabs, and stages. Each group of
  // converters fills a buffer of its own. With slabs of their own warpgroups
  // read one each while another is filled.
  constexpr bool Takes(int buffers, int stages) const {
    return buffers >= converter_groups && buffers <= most_buffers() &&
           (!own_slabs || buffers > consumers) && direct == (stages == 0) &&
           barriers(buffers) <= most_barriers() &&
           barriers(stages) <= most_barriers();
  }
  // Channels of a pixel that are converted together.
  constexpr int values() const { return wide ? 4 : 2; }
  constexpr int converter_warps() const {
    return threads / 32 - 4 * consumers - (direct ? 0 : 1);
  }
  // A thread's, of the other warpgroups and of those that multiply: together
  // what the block was given when it began.
  constexpr int converter_registers() const {
    return threads / 128 == consumers + 2 ? 48 : 56;
  }
  constexpr int consumer_registers() const {
    const int given = 65536 / threads / 8 * 8;
    const int others = threads / 128 - consumers;
    return (given * threads / 128 - others * converter_registers()) /
           consumers / 8 * 8;
  }
};

// A product has 8 * octets * vector_rows * shifts columns, 24 to 48: with fewer
// its rows' way from the registers takes longer than the product. More rows use
// an input row more often and need registers for their sums, of which a thread
// has more in a smaller block. Three warpgroups hide each other's output better
// than two, but leave fewer registers and fewer warps to convert; with one sum
// for all of a filter's products they have enough. One part needs registers for
// half as many sums and a third of the time for products, so that more warps
// convert.
// Slabs of their own spare warpgroups what a slab costs, where it has one tile
// or two and a third buffer fits.
// The columns: size, rows, octets, vector rows; wide; warpgroups that multiply,
// threads, groups that convert; slabs of their own.
constexpr WgmmaShape kWgmmaShapes[] = {
    {3, 6, 3, 1, true, 2, 512, 1, false},
    {3, 6, 3, 1, false, 2, 512, 1, false},
    {3, 6, 2, 2, true, 2, 512, 1, false},
    {3, 6, 2, 2, false, 2, 512, 1, false},
    {3, 6, 2, 2, false, 2, 512, 2, true},
    WgmmaShape{5, 5, 3, 1, true, 2, 512, 1, false}.ThreeAhead(),
    {5, 5, 3, 1, false, 2, 512, 1, false},
    {5, 5, 3, 1, false, 2, 512, 2, true},
    {5, 4, 2, 2, true, 3, 512, 1, false},
    {5, 6, 2, 2, true, 2, 512, 1, false},
    {5, 6, 2, 2, false, 2, 512, 1, false},
    {5, 6, 2, 2, false, 2, 512, 2, true},
    WgmmaShape{5, 6, 2, 2, false, 3, 640, 3, true}.OneSum(),
    WgmmaShape{7, 3, 3, 1, true, 2, 512, 2, true}.TwoColumns().Direct(),
    WgmmaShape{7, 5, 2, 1, true, 2, 384, 1, false}.TwoColumns(),
    WgmmaShape{7, 5, 2, 1, true, 3, 512, 1, false}.TwoColumns().OneSum(),
    {7, 5, 3, 1, true, 2, 512, 1, false},
    {7, 5, 3, 1, false, 2, 512, 1, false},
    {7, 4, 2, 2, true, 3, 512, 1, false},
    {7, 4, 2, 2, false, 2, 512, 1, false},
    {9, 5, 3, 1, true, 2, 512, 1, false},
    {9, 5, 3, 1, false, 2, 512, 1, false},
    {9, 4, 2, 2, true, 3, 512, 1, false},
    {9, 4, 2, 2, false, 2, 512, 1, false},
    WgmmaShape{3, 6, 2, 2, true, 3, 640, 1, false}.OnePart(),
    WgmmaShape{3, 6, 2, 2, false, 3, 640, 1, false}.OnePart(),
    WgmmaShape{5, 5, 3, 1, true, 2, 768, 2, false}.OnePart(),
    WgmmaShape{5, 5, 3, 1, false, 3, 640, 1, false}.OnePart(),
    WgmmaShape{5, 8, 2, 2, true, 2, 640, 2, true}.OnePart(),
    WgmmaShape{5, 6, 2, 2, false, 3, 640, 2, true}.OnePart(),
    WgmmaShape{7, 3, 3, 1, true, 2, 768, 2, false}.TwoColumns().OnePart(),
    WgmmaShape{7, 5, 2, 1, true, 2, 640, 2, true}.TwoColumns().OnePart(),
    WgmmaShape{7, 4, 2, 1, false, 2, 640, 2, true}.TwoColumns().OnePart(),
    WgmmaShape{7, 5, 3, 1, true, 3, 640, 1, false}.OnePart(),
    WgmmaShape{7, 5, 3, 1, false, 3, 640, 1, false}.OnePart(),
    WgmmaShape{9, 4, 2, 2, true, 3, 640, 1, false}.OnePart(),
    WgmmaShape{9, 4, 2, 2, false, 3, 640, 1, false}.OnePart(),
};
constexpr int kWgmmaShapeCount = sizeof(kWgmmaShapes) / sizeof(WgmmaShape);

constexpr int kWgmmaMostBuffers = 6;  // of slabs, stages, raw images
constexpr int kWgmmaUnits = 64;       // of a tile: the rows of a product

// A ring of buffers that are filled and read in turn. Each turn has a barrier
// that says it is filled and one that says it is free; of either there are
// `barriers`, a multiple of the buffers. A barrier tells only one phase from
// the next, so nobody may wait for a phase while the one before it is going on:
// who leaves out turns has barriers of its own.
struct WgmmaRing {
  int buffers, barriers;
  // Of this turn; the parity is that of the barrier's phase.
  int buffer = 0, barrier = 0, parity = 0;

  constexpr WgmmaRing(int of_buffers, int of_barriers)
      : buffers(of_buffers), barriers(of_barriers) {}
  constexpr void Advance(int turns = 1) {
    for (; turns > 0; --turns) {
      if (++buffer == buffers) buffer = 0;
      if (++barrier == barriers) barrier = 0, parity ^= 1;
    }
  }
  // When this barrier's phase of this parity is over, who had the buffer before
  // is done with it. (At first it says so.)
  constexpr int free_barrier() const {
    return barrier - buffers + (barrier < buffers ? barriers : 0);
  }
  constexpr int free_parity() const {
    return barrier < buffers ? parity ^ 1 : parity;
  }
};

// In words of 4 bytes unless stated.
struct WgmmaPlan {
  int64_t batch;
  int C, H, W, M, K, H_out, W_out;
  int shape;         // of kWgmmaShapes
  int pixel_halves;  // C made even
  int steps;         // of 16 halves that cover a filter row
  // Sums that grow for this many steps in the tensor cores, which cut bits off;
  // so many passes make the depth. One part has one pass.
  int pass_steps, passes;
  // Units of a block, which is as many rows as the shape's; of an image; of a
  // slab but the last. An image has so many slabs, of so many blocks or parts
  // of them at most.
  int block_units, units, slab_units;
  int slabs, slab_blocks;
  int pitch;       // of a slab's row
  int slab_words;  // of its halves, for each part
  int slab_buffers;
  // An image as it came, brought ahead, and how many; 0: none is.
  int raw_words, raw_buffers;
  // Groups of 8 * octets filters; those of a phase share a stage.
  int groups, phase_groups;
  int group_bytes;  // of arranged filters, for each part
  // There are no stages with WgmmaShape::direct, and the rest of this is not
  // used then. From filter to filter of the stage. Merged: a slab is an image
  // and a phase all filters, so that the stage is the image's output as it will
  // lie.
  bool merged;
  int stage_pitch, stage_words, stages;
  int shared_bytes;
  // By block_units: for a lane's units by SplitDivide, which is one
  // instruction, and for those of an image, of which there may be too many for
  // that.
  uint32_t units_magic;
  Divisor units_divisor;
  Divisor slabs_divisor;  // by slabs
  uint32_t zero;          // 0, which the compiler does not know

  constexpr int64_t slab_count() const { return batch * slabs; }
  // Of all arranged filters, for the shape's parts.
  constexpr int64_t filter_bytes(int parts) const {
    return int64_t{parts} * groups * group_bytes;
  }
};

// How often converters wait for memory, of whom each of `threads` loads 16
// values at a time: of so many units of channels (of `values` channels each),
// for as many pixels as that gives.
constexpr int WgmmaRounds(int channels, int pixels, int values, int units,
                          int threads) {
  const int at_once = 16 / values / units * threads;
  return (pixels + at_once - 1) / at_once *
         ((channels + values * units - 1) / (values * units));
}
// Few pixels of eight channels, or many of one unit's.
constexpr int WgmmaManyUnits(int values) { return 8 / values; }

// The plan with the shape, the blocks of a slab (with WgmmaShape::direct, its
// tiles), the groups of a phase and the numbers of buffers as said; false if
// that does not fit.
bool SetWgmmaPlan(const Problem& problem, int shape, int slab_parts,
                  int phase_groups, int slab_buffers, int stages,
                  int shared_limit, WgmmaPlan* plan);

// Estimated cycles of the whole convolution.
double WgmmaCost(const WgmmaPlan& plan, int multiprocessors);

// The plan of least cost with a shape of so many parts, or false if there is
// none: the filter's size was not compiled, or the filters or the smallest slab
// do not fit into shared memory.
bool MakeWgmmaPlan(const Problem& problem, int parts, int multiprocessors,
                   int shared_limit, WgmmaPlan* plan);

// For KernelVariant::estimate_ns: nanoseconds of the cheapest plan, or negative
// if there is none.
double EstimateWgmmaNs(const Problem& problem, int parts,
                       const DeviceLimits& limits);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_PLAN_H_
