// How a convolution with max pooling behind it runs on the GPU as one kernel
// (convolve_pool.cu), for images that fit into shared memory. Free of CUDA, so
// that it can be tested without a GPU.
#ifndef KERNELS_COMPILED_CUDA_CONVOLVE_POOL_PLAN_H_
#define KERNELS_COMPILED_CUDA_CONVOLVE_POOL_PLAN_H_

#include <cstdint>

#include "common/network/layer.h"
#include "kernels/convolution/cuda/lib/device_limits.h"

namespace convlab::cuda {

// The sizes of a problem. Windows of the pooling stand side by side.
struct ConvolvePoolProblem {
  int channels;     // C
  int size;         // of the input, height and width
  int filters;      // M
  int kernel_size;  // K
  MaxPool pool;
  Activation activation;
};

// The kernel is compiled for filters of up to kernel_size rows and one size of
// windows. A product's depth is 16 halves, which is 8 words of two channels of
// a pixel; a row of a filter is row_steps products. A product's rows are 64
// positions, for which the rows of their windows are computed together, and its
// columns are the filters in two rows of positions, one below the other.
struct ConvolvePoolInstance {
  int kernel_size, row_steps;
  int tiles;   // of 8 filters: a group
  int blocks;  // on a multiprocessor
  int pool;

  constexpr int filters() const { return 8 * tiles; }
  // Products one after another for a row of positions.
  constexpr int steps() const { return kernel_size * row_steps; }
  // Of filters in shared memory, with a row of zeros on both sides, two words
  // of high halves, and as many of low ones.
  constexpr int filter_bytes() const {
    return row_steps * (kernel_size + 2) * tiles * 512;
  }
};
constexpr ConvolvePoolInstance kConvolvePoolInstances[] = {{5, 2, 2, 4, 2},
                                                           {7, 2, 2, 3, 4}};
constexpr int kConvolvePoolThreads = 128;

struct ConvolvePoolShape {
  ConvolvePoolProblem problem;
  int instance_number;
  ConvolvePoolInstance instance;
  int pairs;      // words of a pixel
  int row_words;  // of a row of the input
  int convolved;  // height and width before pooling, and after
  int pooled;
  int groups;  // of filters

  // Packed filters: what is known of each of them, padded to whole groups;
  // vectors of 16 bytes, [group][step][tile][lane], each {high halves of the
  // first four words, of the last four, low halves of both}, words in the
  // lanes' order for mma.m16n8k16; the filters as they are, and the bias.
  constexpr int padded_filters() const { return groups * instance.filters(); }
  constexpr int vectors() const {
    return groups * instance.steps() * instance.tiles * 32;
  }
  constexpr int weights() const {  // of a filter
    return problem.channels * problem.kernel_size * problem.kernel_size;
  }
  constexpr int image_floats() const {
    return problem.channels * problem.size * problem.size;
  }
};

// Two neighbouring columns of a window; the right one may not exist.
struct ConvolvePoolPair {
  int image, band;  // in the item
  int window;       // in the band
  int column;       // the left one
  bool exists;
};

// False if the kernel does not take the problem.
bool MakeConvolvePoolShape(const ConvolvePoolProblem& problem,
                           ConvolvePoolShape* shape);

// A block of threads computes a group of filters for items, one after another:
// an item is `item_images` whole images, or, with several strips, `bands` bands
// of one image. A band is a row of windows.
//
// The positions of a product's 64 rows are pairs of neighbouring columns, 8
// pairs for each warp: two pairs of each of 4 wide windows, or one pair of each
// of 8 narrow ones. Windows of two columns are narrow, and those of a last
// column that has no more; behind the wide ones.
struct ConvolvePoolLaunch {
  ConvolvePoolShape shape;
  int64_t images;
  int item_images;
  int bands, strips;
  int64_t items, blocks;

  constexpr int wide_columns() const {  // of windows
    const int size = shape.problem.pool.size;
    const int last = shape.convolved - (shape.pooled - 1) * size;
    return size == 2 ? 0 : last > 2 ? shape.pooled : shape.pooled - 1;
  }
  constexpr int narrow_columns() const { return shape.pooled - wide_columns(); }
  // A part is what a warp computes of a product.
  constexpr int wide_parts() const {
    return (item_images * bands * wide_columns() + 3) / 4;
  }
  constexpr int parts() const {
    return wide_parts() + (item_images * bands * narrow_columns() + 7) / 8;
  }
  constexpr int tiles() const { return (parts() + 3) / 4; }
  constexpr int pairs() const { return tiles() * 32; }
  constexpr ConvolvePoolPair PairAt(int i) const {
    const bool wide = i / 8 < wide_parts();
    const int number = wide ? i / 2 : i - 8 * wide_parts();
    const int columns = wide ? wide_columns() : narrow_columns();
    if (columns == 0) return {};
    if (wide) {
      const int line = number / columns;
      return {line / bands, line % bands, number % columns,
              number % columns * shape.problem.pool.size + i % 2 * 2,
              line / bands < item_images};
    }
    // Of all images, then of all bands: four of LeNet-5's images are 4,704
    // bytes apart, and a lane's 32 bytes of each are in banks of their own,
    // where windows side by side, 48 bytes apart, would share some.
    const int line = number / item_images;
    const int window = wide_columns() + line / bands;
    return {number % item_images, line % bands, window,
            window * shape.problem.pool.size, window < shape.pooled};
  }
  // Words beyond the last image that are read: only weights of 0 meet them.
  constexpr int padding() const {
    return (shape.instance.kernel_size + 2 - shape.problem.kernel_size) *
               shape.row_words +
           16;
  }
  constexpr int image_words() const {
    return shape.problem.size * shape.row_words;
  }
  // Shared memory, in bytes: the filters, what is known of two items' images,
  // the pairs, the images as floats, and their words, a high and a low one
  // each.
  constexpr int known_at() const { return shape.instance.filter_bytes(); }
  constexpr int pairs_at() const { return known_at() + 64 * item_images; }
  constexpr int floats_at() const { return pairs_at() + 16 * pairs(); }
  constexpr int words_at() const {
    return floats_at() +
           (4 * item_images * shape.image_floats() + 15) / 16 * 16;
  }
  constexpr int shared_bytes() const {
    return words_at() + 8 * (item_images * image_words() + padding());
  }
};

// The launch with the least estimated time. False if not even one band fits.
bool MakeConvolvePoolLaunch(const ConvolvePoolShape& shape, int64_t images,
                            const DeviceLimits& limits,
                            ConvolvePoolLaunch* launch);

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONVOLVE_POOL_PLAN_H_
