// What a block's threads need to walk over the inputs of a tile, and how many
// images a grid of blocks that stay computes at a time. The direct and the
// implicit kernels share both. Free of CUDA, as their plans are.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_TILE_STEPS_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_TILE_STEPS_H_

#include <cstdint>

namespace convlab::cuda {

// The threads of a block copy the inputs of a tile, [plane][row][column] in
// vectors of `floats` floats: thread t takes the elements t, t + threads, and
// so on. The offsets in x and in shared memory are advanced by one step each
// time, and corrected at the end of a row or plane, so that an element costs no
// multiplication. tile_walk.cuh has the device's side.
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
  s.from = s.plane * area + int64_t{s.row} * W + int64_t{s.column} * floats;
  s.to = s.plane * plane + s.row * pitch + s.column * floats;
  s.from_row = W - columns, s.to_row = pitch - columns;
  s.from_plane = area - int64_t{rows} * W, s.to_plane = plane - rows * pitch;
  return s;
}

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

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_TILE_STEPS_H_
