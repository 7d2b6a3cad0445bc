// The device's side of tile_steps.h.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_TILE_WALK_CUH_
#define KERNELS_CONVOLUTION_CUDA_LIB_TILE_WALK_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/tile_steps.h"

namespace convlab::cuda {

// A thread's place on that walk.
class TileWalk {
 public:
  __device__ TileWalk(const TileSteps& steps, int W, int64_t area, int pitch,
                      int plane) {
    const int element = threadIdx.x;
    column_ = element % steps.columns;
    row_ = element / steps.columns % steps.rows;
    plane_ = element / steps.columns / steps.rows;
    from_ = plane_ * area + int64_t{row_} * W + column_ * steps.floats;
    to_ = plane_ * plane + row_ * pitch + column_ * steps.floats;
  }
  __device__ __forceinline__ void Advance(const TileSteps& steps) {
    plane_ += steps.plane, row_ += steps.row, column_ += steps.column;
    from_ += steps.from, to_ += steps.to;
    if (column_ >= steps.columns) {
      column_ -= steps.columns, ++row_;
      from_ += steps.from_row, to_ += steps.to_row;
    }
    if (row_ >= steps.rows) {
      row_ -= steps.rows, ++plane_;
      from_ += steps.from_plane, to_ += steps.to_plane;
    }
  }
  __device__ int plane() const { return plane_; }
  __device__ int row() const { return row_; }
  __device__ int column() const { return column_; }
  __device__ int64_t from() const { return from_; }
  __device__ int to() const { return to_; }

 private:
  int plane_, row_, column_;
  int64_t from_;
  int to_;
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_TILE_WALK_CUH_
