// How tensor_wgmma and wgmma_fp16 divide a convolution into slabs, tiles and
// phases, and shared memory into buffers. Free of CUDA, so that plans are
// tested without a GPU.
//
// A unit is `rows` outputs of one column of the shape (WgmmaShape), or of two
// neighbouring columns. A band is a whole row of units. The units of an image
// are numbered band by band, and 64 of them make a tile. A slab is what a
// group of converters prepares at a time: an image, or some of its bands or
// tiles. A phase is what shares a stage: the outputs of a slab for some groups
// of filters, or for all.
//
// Where outputs are pooled (WgmmaShape::pool), two units side by side are one
// window, or several in a column. What the plan says of units is true of such
// columns, of which 32 make a tile.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_PLAN_H_

#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/cuda/lib/output_tiles.h"
#include "kernels/convolution/cuda/wgmma/ring.h"
#include "kernels/convolution/cuda/wgmma/shape.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

constexpr int kWgmmaMostBuffers = 8;  // of slabs, stages, raw images
constexpr int kWgmmaUnits = 64;       // of a tile: the rows of a product
constexpr int kWgmmaColumns = 32;     // of windows, where outputs are pooled

// In words of 4 bytes unless stated.
struct WgmmaPlan {
  int64_t batch;
  int C, H, W, M, K, H_out, W_out;
  int shape;              // of kWgmmaShapes
  int pixel_halves;       // C made even
  int steps;              // of 16 halves that cover a filter row
  int band_units, units;  // of a band, and of an image
  int slab_units;         // of a slab; the last one of an image may have fewer
  // Of an image; and the bands that a slab has a part in, at most.
  int slabs, slab_bands;
  int pitch;       // of a slab's row
  int slab_words;  // of its halves, for each part
  int slab_buffers;
  // Where x's images stand in the problem's; of the zeros around them, the
  // bytes between two rows of a slab's halves; and for Divide by inset.width.
  Inset inset;
  int gap_bytes;
  uint32_t columns_magic;
  // An image that is brought ahead, and the number of such buffers, or 0.
  int raw_words, raw_buffers;
  // Groups of 8 * octets filters, and those of a phase.
  int groups, phase_groups;
  int group_bytes;     // of arranged filters, for each part
  int exponent_words;  // one for each filter of all groups, and padding
  int bias_words;      // as many where outputs are pooled
  // With WgmmaShape::direct there are no stages, and these three are not used.
  // If `merged`, a slab is an image and a phase has all filters, so that the
  // stage holds the image's outputs as they stand in device memory. The pitch
  // is the distance of filters in the stage.
  bool merged;
  int stage_pitch, stage_words, stages;
  int shared_bytes;
  // Divide by band_units: for the units of a slab by Divide, which is one
  // instruction; for those of an image, which may be too many for it, by
  // Divisor.
  uint32_t units_magic;
  Divisor units_divisor;
  uint32_t slab_magic;    // Divide by slab_units
  int pooled_area;        // outputs of a filter, where they are pooled
  Divisor slabs_divisor;  // by slabs
  uint32_t zero;          // 0, which the compiler does not know
  // Whether the kernel before this one may compute the inputs, and this one
  // starts before its end.
  bool follows_inputs;

  constexpr int64_t slab_count() const { return batch * slabs; }
  // Of all arranged filters, for the shape's parts.
  constexpr int64_t filter_bytes(int parts) const {
    return int64_t{parts} * groups * group_bytes;
  }
};

// How often a group of `threads` converters waits for memory. A thread loads 16
// values at a time: `units` times `values` channels of as many pixels as that
// gives.
constexpr int WgmmaRounds(int channels, int pixels, int values, int units,
                          int threads) {
  const int at_once = 16 / values / units * threads;
  return CeilDivide(pixels, at_once) * CeilDivide(channels, values * units);
}
// The units of eight channels: a thread loads few pixels of these, or many
// pixels of one unit.
constexpr int WgmmaManyUnits(int values) { return 8 / values; }
// With WgmmaShape::by_pixel, the first pixels of a slab, of which converters
// load one unit at a time. Of the others, which would leave most threads idle,
// a thread loads 16 channels of one pixel.
constexpr int WgmmaPixelsByUnit(int channels, int pixels, int values,
                                int threads) {
  const int rest = pixels % (16 / values * threads);
  return WgmmaRounds(channels, rest, values, 16 / values, threads) <
                 WgmmaRounds(channels, rest, values, 1, threads)
             ? pixels - rest
             : pixels;
}

// The slabs that a tile of columns of windows may have a part in.
constexpr int64_t WgmmaSlabsOfTile(int64_t columns_of_image) {
  return CeilDivide(kWgmmaColumns - 1, columns_of_image) + 1;
}

// The plan of least cost with a shape of so many parts, or false if there is
// none: the filter's size was not compiled, or not with the epilogue, or the
// filters or the smallest slab do not fit into shared memory. x has images
// inside of the problem's, or those themselves if `inset` is null.
bool MakeWgmmaPlan(const Problem& problem, int parts,
                   const DeviceLimits& limits, WgmmaPlan* plan,
                   const Epilogue& epilogue = {}, const Inset* inset = nullptr);

// The tiles that have a scale of their own: a plan's slabs.
OutputTiles SlabTiles(const WgmmaPlan& plan);

// For KernelVariant::estimate_ns: nanoseconds of the cheapest plan, or negative
// if there is none.
double EstimateWgmmaNs(const Problem& problem, int parts,
                       const DeviceLimits& limits);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_PLAN_H_
