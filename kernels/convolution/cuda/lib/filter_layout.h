// How the filters stand in memory for kernels whose operands on the tensor
// cores are scaled halves; halves.cuh arranges them so.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_FILTER_LAYOUT_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_FILTER_LAYOUT_H_

#include <cstdint>

namespace convlab::cuda {

// The bytes of a lane's words of a tile of filters: two words of high halves
// and two of low ones.
constexpr int kSplitVectorBytes = 16;

// A column of the product is a filter, moved to the right by 0 to `shifts` - 1
// pixels; its depth is the filters' channels and taps, in steps of 16 halves,
// which are two chunks. A chunk is eight halves of one filter row of a plane
// of plane_channels channels.
struct FilterLayout {
  int M, C, K;
  int plane_channels, shifts;
  int chunks, chunks_per_plane;  // of all planes, and of one
  bool row_pairs;  // a step is one chunk of two filter rows, not two of one
  int rows;        // of steps: K or more, with row pairs half of that
  int tiles_n;     // of a group of filters, each 8 columns of the product
  // Groups of all columns, and vectors of a lane's words in each.
  int filter_groups, filter_vectors;

  // Those that exist and those that fill the last group.
  constexpr int64_t filters() const {
    return int64_t{filter_groups} * tiles_n * 8 / shifts;
  }
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_FILTER_LAYOUT_H_
