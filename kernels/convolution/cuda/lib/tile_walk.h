// How the threads of a block walk over the inputs of a tile, and how many
// images a grid of blocks that stay works on: what the direct and the implicit
// kernels share.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_TILE_WALK_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_TILE_WALK_H_

#include <cstdint>

namespace convlab::cuda {

// How the threads of a block walk over the inputs of a tile, [plane][row]
// [column] in vectors of `floats` floats: element blockDim.x is the next of a
// thread's. Both sides' offsets are counted along, and carried where a row or a
// plane is full, so that an element costs no multiplication.
struct TileSteps {
  int floats;
  int rows, columns;  // columns in vectors
  // One step, before carrying.
  int plane, row, column;
  int64_t from;  // in x
  int to;        // in shared memory
  // What a full row, and a full plane, add to the offsets.
  int64_t from_row, from_plane;
  int to_row, to_plane;
};

// For tiles of rows x columns; in x rows are `W` and planes `area` apart, in
// shared memory `pitch` and `plane`.
inline TileSteps MakeTileSteps(int threads, int floats, int rows, int columns,
                               int W, int64_t area, int pitch, int plane) {
  TileSteps s;
  s.floats = floats, s.rows = rows, s.columns = columns / floats;
  s.column = threads % s.columns;
  s.row = threads / s.columns % rows;
  s.plane = threads / s.columns / rows;
  s.from = s.plane * area + int64_t{s.row} * W + s.column * floats;
  s.to = s.plane * plane + s.row * pitch + s.column * floats;
  s.from_row = W - columns, s.to_row = pitch - columns;
  s.from_plane = area - int64_t{rows} * W, s.to_plane = plane - rows * pitch;
  return s;
}

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

// How many images are worked on at a time, if the device holds `resident`
// blocks and an image needs `places`: as many as fill it, with blocks that
// stay; where that leaves many multiprocessors idle, several times as many, and
// blocks come and go.
inline int64_t ImagesAtOnce(int64_t resident, int64_t places, int64_t batch) {
  int64_t images = resident / places;
  if (images < 8) images = 8 * resident / places + 1;
  return images < batch ? images : batch;
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_TILE_WALK_H_
