// How many filters fit into constant memory, for the lessons that keep their
// weights there.
#ifndef KERNELS_CONVOLUTION_CUDA_LESSONS_CONSTANT_FILTERS_H_
#define KERNELS_CONVOLUTION_CUDA_LESSONS_CONSTANT_FILTERS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {

// A device has 64 KB of constant memory.
constexpr int kConstantFloats = 64 * 1024 / 4;

// Weights of one filter.
inline int64_t FilterFloats(const Problem& p) {
  return p.channels * p.kernel_size * p.kernel_size;
}

// Filters whose weights are in constant memory at the same time: as many as
// fit, at most all of them.
inline int64_t FiltersAtATime(const Problem& p) {
  return std::min(p.filters, kConstantFloats / FilterFloats(p));
}

// For KernelVariant::reject, for kernels that launch one block per image,
// filter and tile.
inline const char* RejectConstantFilters(const Problem& p,
                                         int64_t tiles_per_plane) {
  if (FilterFloats(p) > kConstantFloats) {
    return "one filter exceeds the 64 KB of constant memory";
  }
  return p.batch * FiltersAtATime(p) * tiles_per_plane > kMaxGridX
             ? kTooManyBlocks
             : nullptr;
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LESSONS_CONSTANT_FILTERS_H_
