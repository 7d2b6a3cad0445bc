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
constexpr ConvolvePoolInstance kConvolvePoolInstances[] = {{5, 2, 2, 3, 2},
                                                           {7, 2, 2, 2, 4}};
constexpr int kConvolvePoolThreads = 128;
constexpr int kConvolvePoolTile = 64;  // positions

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

// False if the kernel does not take the problem.
bool MakeConvolvePoolShape(const ConvolvePoolProblem& problem,
                           ConvolvePoolShape* shape);

// A block of threads computes a group of filters for items, one after another:
// an item is `item_images` whole images, or, with several strips, `bands` bands
// of one image. A band is a row of windows. The columns of an item's windows,
// [band][image][column], are its runs.
struct ConvolvePoolLaunch {
  ConvolvePoolShape shape;
  int64_t images;
  int item_images;
  int bands, strips;
  int64_t items, blocks;
  // For Divide: by the result's width, by the windows of a band of all images
  // and of all bands of an image, and by the width before pooling and that of
  // all images.
  uint32_t pooled_magic, area_magic, convolved_magic, band_magic;

  constexpr int area() const { return bands * shape.pooled; }
  constexpr int runs() const { return item_images * bands * shape.convolved; }
  constexpr int tiles() const {
    return (runs() + kConvolvePoolTile - 1) / kConvolvePoolTile;
  }
  constexpr int padded_runs() const { return tiles() * kConvolvePoolTile; }
  // Between two filters' sums in shared memory, in floats: a multiple of 16 and
  // 4, so that the lanes of a warp store to different banks.
  constexpr int pitch() const { return padded_runs() + 4; }
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
  // the runs, their sums, the images as floats, and their words, a high and a
  // low one each.
  constexpr int known_at() const { return shape.instance.filter_bytes(); }
  constexpr int runs_at() const { return known_at() + 64 * item_images; }
  constexpr int sums_at() const { return runs_at() + 8 * padded_runs(); }
  constexpr int floats_at() const {
    return sums_at() + 4 * pitch() * shape.instance.filters();
  }
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
