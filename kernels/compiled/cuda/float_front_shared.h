// The sizes of the front of floats by products of warpgroups, and what its
// shared memory holds. For the kernel and for who launches it.
#ifndef KERNELS_COMPILED_CUDA_FLOAT_FRONT_SHARED_H_
#define KERNELS_COMPILED_CUDA_FLOAT_FRONT_SHARED_H_

#include "kernels/compiled/cuda/float_front.h"

namespace convlab::cuda {

constexpr int kFloatGroups = 2;  // warpgroups of a block
constexpr int kFloatGroupThreads = 128 * kFloatGroups;
constexpr int kFloatGroupBlocks = 2;   // on a multiprocessor
constexpr int kFloatGroupImages = 16;  // of a block, at most
// What halves may lose of a pixel or a weight, as they do of any that they keep
// whole; and the powers of two that an image's and a filter's largest one may
// have: far from the limits of float, no product of their factors leaves its
// range.
constexpr float kFloatFrontMostLost = 0x1p-23f;
constexpr int kFloatFrontMostPower = 60;
// A warp keeps an image in registers while it splits it.
constexpr int kFloatGroupVectors = 8;
constexpr int kFloatGroupPixels = 32 * 4 * kFloatGroupVectors;

// What stands in shared memory: the filters, as columns of products, and
// images. Behind an image are zeros, which its last windows read.
struct FloatFrontShared {
  static constexpr int kTiles = FloatFront::kMostFilters / 2;
  static constexpr int kTileBytes = 256, kPartBytes = kTiles * kTileBytes;
  static constexpr int kZeroBytes = 16;

  static constexpr int Steps(int kernel_size) { return (kernel_size + 1) / 2; }
  static constexpr int ImagesAt(int kernel_size) {
    return 2 * Steps(kernel_size) * kPartBytes;
  }
  static constexpr int ImageBytes(int size) {
    return size * size * 4 + kZeroBytes;
  }
  // An image's last row of pairs of windows may have none below, for which
  // nevertheless two rows behind the image are read.
  static constexpr int Bytes(int kernel_size, int size, int images) {
    return ImagesAt(kernel_size) + images * ImageBytes(size) + 2 * size * 4;
  }
};

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_FLOAT_FRONT_SHARED_H_
