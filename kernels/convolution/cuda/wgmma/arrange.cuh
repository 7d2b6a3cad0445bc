// Brings the filters of a convolution into the order in which the products of
// WgmmaKernel read them.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_ARRANGE_CUH_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_ARRANGE_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/wgmma/plan.h"

namespace convlab::cuda {

// Scales the filters, splits them into halves, and brings these into the order
// in which products read them: [group][part][step][filter row][octet][half of
// the depth][filter][halves]. A product with several output rows reads as many
// filter rows as one run. They run downwards from the last, and
// `vector_rows` - 1 rows of zeros stand before and after them. With two shifts
// there are twice as many octets, each of four filters: two pairs, each as it
// is and moved by a pixel, so that the outputs of two neighbouring lanes are
// neighbours. A block arranges one filter, those that fill the last group as
// zeros.
template <int kParts>
__global__ void ArrangeWgmmaFiltersKernel(
    const float* k, uint32_t* arranged, ScaledFilter* filters,
    const __grid_constant__ WgmmaPlan plan, int octets, int shifts,
    int vector_rows, bool wide) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  WaitForKernelBefore();
  LetNextKernelStart();
  const int m = blockIdx.x;
  const int weights = m < plan.M ? plan.C * plan.K * plan.K : 0;
  const float* const weight = k + int64_t{m} * weights;
  const FilterScale scale = ScaleFilter(weight, weights, filters + m);
  // What one part loses is within its class.
  if (kParts == 1 && threadIdx.x == 0) filters[m].lossy = 0;

  const float share = scale.exact() ? 0 : kCutShare;

  const int group = m / (8 * octets), of_group = m % (8 * octets);
  const int rows = plan.K + 2 * (vector_rows - 1);
  const int row_words = octets * shifts * 64;
  const int part_words = plan.steps * rows * row_words;
  uint32_t* const first = arranged + int64_t{group} * kParts * part_words;
  // Of a filter: four words of each half of the depth, shift and row.
  for (int i = threadIdx.x; i < plan.steps * rows * shifts * 8;
       i += blockDim.x) {
    const int word = i % 4;
    const int depth = i / 4 % 2;
    const int shift = i / 8 % shifts;
    const int at_row = i / 8 / shifts % rows;
    const int step = i / 8 / shifts / rows;
    const int octet = shifts == 1 ? of_group / 8 : of_group / 4;
    const int filter = shifts == 1
                           ? of_group % 8
                           : of_group % 4 / 2 * 4 + shift * 2 + of_group % 2;
    const int row = plan.K + vector_rows - 2 - at_row;
    float v[2];
    for (int e = 0; e < 2; ++e) {
      // The half of the step that a lane loads: its two words are neighbours,
      // or stand four words apart.
      const int half =
          wide ? word * 4 + depth * 2 + e : depth * 8 + word * 2 + e;
      const int from = step * 16 + half - shift * plan.pixel_halves;
      const int c = from % plan.pixel_halves, q = from / plan.pixel_halves;
      const bool exists = weights > 0 && from >= 0 && c < plan.C &&
                          q < plan.K && row >= 0 && row < plan.K;
      v[e] = scale(
          LoadIfBelow(0, exists, weight + (c * plan.K + row) * plan.K + q));
    }
    uint32_t* const to = first + (step * rows + at_row) * row_words +
                         octet * 64 + depth * 32 + filter * 4 + word;
    uint32_t low;
    SplitWeights(v[0], v[1], share, to[0], low);
    if constexpr (kParts == 2) to[part_words] = low;
  }
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_ARRANGE_CUH_
