// How a direct convolution in shared memory is cut; `direct_tiled` and `half2`
// share it. Free of CUDA, so that plans are tested without a GPU; direct.cuh
// has the device's side.
//
// A block keeps the inputs of one tile of one image and a block of filters in
// shared memory. Its threads form a box of threads_x by threads_y by threads_m;
// each computes `filters` filters at `columns` neighbouring columns in each of
// `rows` rows. A thread's rows are threads_y apart, so that a warp stores to
// consecutive addresses.
#ifndef KERNELS_CONVOLUTION_CUDA_DIRECT_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_DIRECT_PLAN_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/tile_steps.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// What a kernel was compiled for.
struct DirectTile {
  int filters, rows, columns;  // of a thread's outputs
  int threads;                 // of a block, at most
  int element_bytes;           // of an input or filter in shared memory
  int vector;                  // inputs in one load from there
  int buffers;                 // of inputs
  bool constant_filters;       // filters are in constant memory
};

struct DirectPlan {
  int C, H, W, M, K, H_out, W_out;
  int threads_x, threads_y, threads_m;
  // Tiles of an image across and down, and blocks of filters. A block of
  // threads keeps its tile's place and its filters for all images that it
  // computes.
  int tiles_x, tiles_y, filter_blocks;
  int64_t batch;
  // A tile's inputs come in `chunks` of `channels` channels, each rows x
  // columns elements, the rows `pitch` elements apart.
  int channels, chunks, rows, columns, pitch;
  TileSteps steps;
  int store_floats;  // of y in one store: 1, 2 or 4
  // Elements of one buffer.
  int input_elements, filter_elements;
  int64_t shared_bytes;

  constexpr int threads() const { return threads_x * threads_y * threads_m; }
  // Whole warps: the threads of a block, of which some may only help to load.
  constexpr int block_threads() const { return (threads() + 31) / 32 * 32; }
  // Blocks that one image needs.
  constexpr int64_t places() const {
    return int64_t{tiles_x} * tiles_y * filter_blocks;
  }
};

// Cuts the problem for `tile`; false if not even the smallest part of it fits
// into shared memory.
bool MakeDirectPlan(const DirectTile& tile, const Problem& problem,
                    const DeviceLimits& limits, DirectPlan* plan);

// Sets how x and y are read and written: in vectors that divide their rows and
// addresses. Inputs are copied by up to `most_floats` at a time.
void SetVectors(const float* x, const float* y, const DirectTile& tile,
                int most_floats, DirectPlan* plan);

// Multiply-adds that the threads do for one that the definition needs.
double Padding(const DirectTile& tile, const DirectPlan& plan);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_DIRECT_PLAN_H_
