// The plan of the general kernel (general.cu): how operations are divided into
// tiles of outputs and chunks of taps. No CUDA in here, and small, because nvcc
// parses it once per architecture.
#ifndef KERNELS_OPERATION_CUDA_GENERAL_PLAN_H_
#define KERNELS_OPERATION_CUDA_GENERAL_PLAN_H_

#include <cstdint>

#include "common/network/layer.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/division.h"

namespace convlab {
struct Operation;
}

namespace convlab::cuda {

// Sums of a thread: so many filters at so many positions. Its registers allow
// so many threads of a multiprocessor at a time.
struct GeneralShape {
  int filters, positions, threads;
};
constexpr GeneralShape kGeneralShapes[] = {
    {16, 8, 256}, {16, 7, 384}, {12, 8, 384}, {16, 4, 512}, {8, 8, 512},
    {8, 4, 768},  {4, 8, 512},  {2, 8, 768},  {1, 8, 768}};
constexpr int kGeneralShapeCount =
    sizeof(kGeneralShapes) / sizeof(kGeneralShapes[0]);

constexpr int kGeneralMostThreads = 256;

// Where the element (b, c, h, w) of a tensor is: the sum of products with
// these.
struct Steps {
  int64_t b;
  int c, h, w;
};

Steps StepsOf(bool channels_last, int64_t channels, int64_t height,
              int64_t width);

struct GeneralPlan {
  // Of the operation. A tap is a (channel, filter row, filter column).
  int64_t batch;
  int C, H, W, M, KH, KW, OH, OW;
  int stride_y, stride_x, top, left;
  int taps;
  Activation activation;
  Steps in, out;                         // of x, and of the sums
  bool halves_x, halves_in, halves_out;  // x; k and the bias; the sums

  // A block computes a tile of outputs for its filters. Its warps are
  // filter_warps with the same positions and taps, 2^shares_log with the same
  // outputs, and so many times as many as the tile has parts.
  int shape, warps, filter_warps, shares_log;
  int filters, filter_groups;  // of a block; of the operation
  int images, rows, columns;   // of a tile
  int tiles_y, tiles_x;        // of an image
  int64_t blocks;

  // A chunk's inputs and weights are in shared memory together. It has several
  // channels, or several rows of one channel's filter, or a part of one row.
  int chunk_channels, chunk_rows, chunk_columns;
  int row_chunks, column_chunks, chunks;  // of a channel, of a row, of all
  int stages;                             // chunks in shared memory
  // Whether rows lie in shared memory as they do in memory, so that they come
  // in vectors of four neighbours if x_aligned, by LaunchGeneral: so many cover
  // a row of the tile. Otherwise a row's columns lie apart by their remainder
  // of stride_x, in so many phases, so that neighbouring outputs read
  // neighbours.
  bool vectors, x_aligned;
  int row_vectors, phases;
  int in_rows, in_columns;  // of an image's inputs
  // In floats.
  int phase_pitch, row_pitch, image_pitch, channel_pitch, weight_pitch;
  int input_floats, stage_floats;
  int chunk_taps;  // rounded up to vectors
  int shared_bytes;
  // Whether it may start before the kernel before has ended: by PrepareGeneral.
  bool overlaps;

  Divisor by_filter_groups, by_tiles_x, by_tiles_y;  // blocks
  Divisor by_row_chunks, by_column_chunks;
  Divisor by_tile, by_columns;             // positions
  Divisor by_rows_of_channel, by_in_rows;  // rows of inputs
  Divisor by_row_vectors;
  Divisor by_phases;
  Divisor by_chunk_filter, by_chunk_columns;  // taps of a chunk
};

// The plan with the least cost for a valid operation; false if it would need
// more blocks than a grid has. If x was `copied` before, it is floats with the
// channels first.
bool MakeGeneralPlan(const Operation& operation, const DeviceLimits& limits,
                     GeneralPlan* plan, bool copied = false);

// Nanoseconds from a cold L2 cache.
double EstimateGeneralNs(const GeneralPlan& plan, const DeviceLimits& limits);

}  // namespace convlab::cuda

#endif  // KERNELS_OPERATION_CUDA_GENERAL_PLAN_H_
