// How the front of a network runs on the GPU as one kernel (front.cu): from the
// bytes of the images, which are enlarged on the way, through a convolution,
// its bias, max pooling of 2 x 2 and its activation. Free of CUDA, so that it
// can be tested without a GPU.
#ifndef KERNELS_COMPILED_CUDA_FRONT_PLAN_H_
#define KERNELS_COMPILED_CUDA_FRONT_PLAN_H_

#include <cstdint>

#include "common/network/layer.h"
#include "kernels/convolution/cuda/lib/division.h"

namespace convlab::cuda {

// The sizes of a problem.
struct FrontProblem {
  int size;         // of the images, in pixels
  int enlarged;     // of the convolution's input, which has one channel
  int filters;      // M
  int kernel_size;  // K
  MaxPool pool;
  Activation activation;
};

// A product of the tensor cores has 16 rows, each one pooled position, that is,
// a window of 2 x 2 outputs; 8 columns; and a depth of 16, two input rows of 8
// pixels. A column is a filter at one of the four places of the window, which
// is a shift of the filter, so that all four read the same (K + 1) x 8 pixels:
// at place (dy, dx), depth 8 p + q has the filter's weight [p - dy][q - dx], or
// 0 outside of it. K is at most 7. Two tiles of columns have four filters,
//
//   column 2 f + dx of tile dy,
//
// so that a lane's columns are a filter's whole window; a single tile has two,
// in columns 4 f + 2 dy + dx.
struct FrontShape {
  FrontProblem problem;
  bool warpgroups;  // for products of warpgroups, not of warps
  int pooled;       // height and width of the result
  int steps;        // products one after another: pairs of input rows
  int tiles;        // of two filters, that are computed together: a group
  int groups;       // of filters
  int columns;      // of pixels, with those beyond the image that are read
  int64_t pitch;  // floats between two images' results, a multiple of 4 or all
                  // that an image has
  // For Divide: by the columns of the source with its border, by its words of
  // four (0: its rows are not whole words), by the columns of the enlarged
  // image, and by pairs of `columns`.
  uint32_t source_magic, words_magic, enlarged_magic, pairs_magic;

  // Vectors of 16 bytes of the filters, [group][step][tile][lane]: {high of
  // row 2 step, high of row 2 step + 1, low of both}, words of two halves of
  // neighbouring pixels, in the lanes' order for mma.m16n8k16. And one factor
  // and bias for each filter, padded to whole groups.
  int vectors() const { return groups * steps * tiles * 32; }
  int padded_filters() const { return groups * tiles * 2; }
  // Warpgroups collect an image's results in shared memory, from where the copy
  // engine writes them, 16 bytes at least: either a filter's plane by itself,
  // or all of them together.
  constexpr int plane() const { return pooled * pooled; }
  constexpr bool by_planes() const { return plane() % 4 == 0; }
  // Floats between two planes there. Four filters of 8 neighbouring positions
  // are in different banks, or where planes follow each other, which mostly
  // have an odd number of values, of 8 positions that are four apart.
  constexpr int result_plane() const {
    return by_planes() ? plane() + (40 - plane() % 32) % 32 : plane();
  }
};

// False if the kernels do not take the problem. `warpgroups`: for products of
// warpgroups, which take 9 to 12 filters, or up to 4, and all but large images;
// others get a shape for warps.
bool MakeFrontShape(const FrontProblem& problem, bool warpgroups,
                    FrontShape* shape);

// The kernels are compiled for these: by warps, which keep their filters in
// registers, and by warpgroups.
constexpr int kFrontSteps[] = {3, 4};
constexpr int kFrontTiles[] = {2, 3};
constexpr int kFrontGroupTiles[] = {2, 6};
// Threads of a block of warps, and of a warpgroup.
constexpr int kFrontThreads = 128;
// Blocks of warps on a multiprocessor, by what a lane keeps of its filters.
constexpr int FrontBlocks(int steps, int tiles) {
  return steps * tiles > 9 ? 4 : 5;
}
// Warpgroups on a multiprocessor, and of a block, at most, by its tiles.
constexpr int FrontGroups(int tiles) { return tiles > 4 ? 6 : 8; }
constexpr int FrontBlockGroups(int tiles) { return tiles > 4 ? 3 : 2; }

// Of two positions, one below the other, in shared memory (FrontRun).
constexpr int kFrontRunBytes = 4;

// Columns between two rows of pixels in shared memory; twice the words of two
// halves.
constexpr int FrontPitch(bool warpgroups) { return warpgroups ? 96 : 136; }

// A block of threads computes `wide` groups of filters in strips, one after
// another: a strip is `rows` rows of an image's result, two at least.
struct FrontLaunch {
  FrontShape shape;
  int64_t images;
  int wide;  // 1 or 2
  int rows;
  int strips;      // of an image
  int64_t blocks;  // for each `wide` groups
  // Of the strip's pixels, in words of two: a block's threads are side by side
  // on as many parts of the rows as there are threads for.
  int part_rows;
  int threads;  // of a block

  // A strip's positions as pairs, one below the other; a product takes 16, or
  // 64.
  constexpr int runs() const { return (rows + 1) / 2 * shape.pooled; }
  constexpr int padded_runs() const {
    // Two constants, by which the kernels divide without a division.
    return shape.warpgroups ? (runs() + 63) / 64 * 64 : (runs() + 15) / 16 * 16;
  }
  // The rows of pixels under a strip, and at most those of the source, with its
  // border, that they are mixed from.
  constexpr int pixel_rows() const { return 2 * (rows - 1) + 2 * shape.steps; }
  constexpr int source_rows() const {
    const int size = shape.problem.size;
    const int all = size + 2;
    const int mixed = pixel_rows() * size / shape.problem.enlarged + 3;
    return mixed < all ? mixed : all;
  }
  constexpr int pitch() const { return FrontPitch(shape.warpgroups); }
  // Shared memory, in bytes: the filters, for products of warpgroups, the
  // factors and biases of the groups, columns' weights, the runs, the source's
  // rows as floats, the pixels as halves, and whole results.
  constexpr int filter_bytes() const {
    return shape.warpgroups ? 512 * shape.steps * shape.tiles : 0;
  }
  constexpr int taps_at() const {
    return shape.warpgroups ? filter_bytes() : 16 * shape.tiles * wide;
  }
  constexpr int runs_at() const {
    return taps_at() + (8 * shape.problem.enlarged + 15) / 16 * 16;
  }
  constexpr int source_at() const {
    return runs_at() + kFrontRunBytes * padded_runs();
  }
  constexpr int pixels_at() const {
    return source_at() + 4 * source_rows() * (shape.problem.size + 2);
  }
  constexpr int result_at() const {
    return (pixels_at() + 2 * pixel_rows() * pitch() + 15) / 16 * 16;
  }
  constexpr int shared_bytes() const {
    return result_at() + (shape.warpgroups
                              ? 4 * shape.problem.filters * shape.result_plane()
                              : 0);
  }
};

// By warps, as many strips as fill the GPU, and no more. By warpgroups, a block
// computes whole images.
FrontLaunch MakeFrontLaunch(const FrontShape& shape, int64_t images,
                            int multiprocessors);

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_FRONT_PLAN_H_
