// The computation of dense_lanes, for whatever has a plan of spans and taps.
#ifndef KERNELS_CONVOLUTION_CPU_DENSE_LANES_BLOCK_H_
#define KERNELS_CONVOLUTION_CPU_DENSE_LANES_BLOCK_H_

#include <cstdint>

#include "kernels/convolution/cpu/dense_lanes_plan.h"

namespace convlab::cpu::dense_lanes {

// With fewer products per output, memory has no time to fetch more than the
// next image.
constexpr int64_t kTapsToFetch = 100;

// What dense_lanes_block.cc compiles to for one instruction set.
struct BlockKernel {
  int64_t lanes;
  int most_filters;  // of a block
  // Computes the block's outputs. Its weights are those of a group of
  // GroupFilters (filter_groups.h).
  void (*convolve)(const Plan& plan, const Block& block);
};

// That of the chosen instructions or, for output rows of fewer than its lanes,
// of others.
BlockKernel ChosenBlockKernel(int64_t width);

}  // namespace convlab::cpu::dense_lanes

#endif  // KERNELS_CONVOLUTION_CPU_DENSE_LANES_BLOCK_H_
