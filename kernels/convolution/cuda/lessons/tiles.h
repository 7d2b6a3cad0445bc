// How many tiles cover an output plane. The lessons that compute a rectangle of
// outputs per block number the tiles of a plane row by row, and the planes one
// after the other, in the grid's x: y and z are too small for a large batch.
#ifndef KERNELS_CONVOLUTION_CUDA_LESSONS_TILES_H_
#define KERNELS_CONVOLUTION_CUDA_LESSONS_TILES_H_

#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {

// Tiles of `width` columns that lie side by side in an output plane.
inline int64_t TilesAcross(const Problem& p, int64_t width) {
  return CeilDivide(p.output_width(), width);
}

// Tiles of `height` rows and `width` columns in an output plane.
inline int64_t TilesPerPlane(const Problem& p, int64_t height, int64_t width) {
  return TilesAcross(p, width) * CeilDivide(p.output_height(), height);
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LESSONS_TILES_H_
