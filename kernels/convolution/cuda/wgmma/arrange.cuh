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
// the depth][filter][halves]. Filter rows run downwards from the last, and
// `vector_rows` - 1 rows of zeros stand before and after them. With two shifts
// there are twice as many octets, each of four filters: two pairs, each as it
// is and moved by a pixel, so that the outputs of two neighbouring lanes are
// neighbours. *exponent_out becomes the exponent of the power of two, or
// kNotScalable.
template <int kParts>
__global__ void ArrangeWgmmaFiltersKernel(
    const float* k, uint32_t* arranged, int* exponent_out,
    const __grid_constant__ WgmmaPlan plan, int octets, int shifts,
    int vector_rows, bool wide) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  LetNextKernelStart();
  const uint32_t most = LargestOfBlock(k, plan.M * plan.C * plan.K * plan.K);
  const float scale = FilterScale(most, exponent_out);

  const int rows = plan.K + 2 * (vector_rows - 1);
  const int words =
      plan.steps * rows * shifts * octets * 64;  // of a group's high halves
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < plan.groups * words;
       i += gridDim.x * blockDim.x) {
    const int group = i / words, at = i % words;
    const int word = at % 4;
    const int filter = at / 4 % 8;
    const int depth = at / 32 % 2;
    const int octet = at / 64 % (octets * shifts);
    const int row =
        plan.K + vector_rows - 2 - at / 64 / (octets * shifts) % rows;
    const int step = at / 64 / (octets * shifts) / rows;
    const int shift = shifts == 1 ? 0 : filter / 2 % 2;
    const int64_t m = int64_t{group} * octets * 8 +
                      (shifts == 1 ? octet * 8 + filter
                                   : octet * 4 + filter / 4 * 2 + filter % 2);
    float v[2];
    for (int e = 0; e < 2; ++e) {
      // The half of the step that a lane loads: its two words are neighbours,
      // or stand four words apart.
      const int half =
          wide ? word * 4 + depth * 2 + e : depth * 8 + word * 2 + e;
      const int from = step * 16 + half - shift * plan.pixel_halves;
      const int c = from % plan.pixel_halves, q = from / plan.pixel_halves;
      const bool exists = from >= 0 && m < plan.M && c < plan.C && q < plan.K &&
                          row >= 0 && row < plan.K;
      v[e] = scale *
             LoadIfBelow(0, exists,
                         k + ((m * plan.C + c) * plan.K + row) * plan.K + q);
    }
    uint32_t* const to = arranged + int64_t{group} * kParts * words + at;
    uint32_t low;
    Split(v[0], v[1], to[0], low);
    if constexpr (kParts == 2) to[words] = low;
  }
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_ARRANGE_CUH_
