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
  int pooled;   // height and width of the result
  int steps;    // products one after another: pairs of input rows
  int tiles;    // of two filters, that a warp computes together: a group
  int groups;   // of filters
  int columns;  // of pixels, with those beyond the image that are read
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
};

// False if the kernel does not take the problem.
bool MakeFrontShape(const FrontProblem& problem, FrontShape* shape);

// The kernel is compiled for these.
constexpr int kFrontSteps[] = {3, 4};
constexpr int kFrontTiles[] = {2, 3};
constexpr int kFrontThreads = 128;
// Blocks on a multiprocessor, by what a lane keeps of its filters.
constexpr int FrontBlocks(int steps, int tiles) {
  return steps * tiles > 9 ? 4 : 5;
}
// Columns between two rows of pixels in shared memory, and words of two halves.
constexpr int kFrontPitch = 136, kFrontWords = kFrontPitch / 2;

// A block of threads computes `wide` groups of filters in strips, one after
// another: a strip is `rows` rows of an image's result, two at least.
struct FrontLaunch {
  FrontShape shape;
  int64_t images;
  int wide;  // 1 or 2
  int rows;
  int strips;      // of an image
  int64_t blocks;  // for each `wide` groups

  // A strip's positions as pairs, one below the other; a product takes 16.
  constexpr int runs() const { return (rows + 1) / 2 * shape.pooled; }
  constexpr int padded_runs() const { return (runs() + 15) / 16 * 16; }
  // The rows of pixels under a strip, and at most those of the source, with its
  // border, that they are mixed from.
  constexpr int pixel_rows() const { return 2 * (rows - 1) + 2 * shape.steps; }
  constexpr int source_rows() const {
    const int size = shape.problem.size;
    const int all = size + 2;
    const int mixed = pixel_rows() * size / shape.problem.enlarged + 3;
    return mixed < all ? mixed : all;
  }
  // Shared memory, in bytes: the factors and biases of the groups, columns'
  // weights, the runs, the source's rows after mixing columns and before, as
  // floats, and the pixels as halves.
  constexpr int scale_bytes() const { return 16 * shape.tiles * wide; }
  constexpr int runs_at() const {
    return scale_bytes() + (8 * shape.problem.enlarged + 15) / 16 * 16;
  }
  constexpr int across_at() const { return runs_at() + 8 * padded_runs(); }
  constexpr int source_at() const {
    return across_at() + 4 * source_rows() * kFrontPitch;
  }
  constexpr int pixels_at() const {
    return source_at() + 4 * source_rows() * (shape.problem.size + 2);
  }
  constexpr int shared_bytes() const {
    return pixels_at() + 2 * pixel_rows() * kFrontPitch;
  }
};

// As many strips as fill the GPU, and no more.
FrontLaunch MakeFrontLaunch(const FrontShape& shape, int64_t images,
                            int multiprocessors);

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_FRONT_PLAN_H_
