// How the filters lie for wgmma_strips' products: the kernel that arranges
// them, and where in a group a filter stands.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_FILTERS_CUH_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_FILTERS_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/strips/wgmma_plan.h"

namespace convlab::cuda {

// Which filter of a group stands at a place of the product's columns and of the
// stage. The even ones come first: then those of one octet mostly begin alike
// in sectors of 32 bytes, and lanes that store them meet different banks.
template <int kFilters>
__device__ __forceinline__ int FilterAt(int place) {
  constexpr int kEven = (kFilters + 1) / 2;
  return place < kEven ? 2 * place : 2 * (place - kEven) + 1;
}
template <int kFilters>
__device__ __forceinline__ int PlaceOf(int filter) {
  return filter / 2 + filter % 2 * ((kFilters + 1) / 2);
}

// Scales the filters, splits them and brings them into the order in which
// products read them: [group][channel][slice][high, low][step][octet]
// [half of the depth][column][halves]. *exponent_out becomes the exponent of
// the power of two by which they are scaled, or kNotScalable.
template <int kShape>
__global__ void ArrangeWgmmaStripsFiltersKernel(
    const float* k, uint32_t* arranged, int* exponent_out,
    const __grid_constant__ WgmmaStripsPlan plan) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  LetNextKernelStart();
  constexpr WgmmaStripsShape kS = kWgmmaStripsShapes[kShape];
  const uint32_t most = LargestOfBlock(k, plan.M * plan.C * plan.K * plan.K);
  const float scale = FilterScale(most, exponent_out);

  constexpr int kOctetFilters = 8 / kS.shifts;
  constexpr int kWords = kS.steps * kS.octets * 64;  // a slice's high halves
  const int slices = plan.filter_groups * plan.C * plan.slices;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < slices * kWords;
       i += gridDim.x * blockDim.x) {
    const int at = i % kWords;
    const int slice = i / kWords % plan.slices;
    const int c = i / kWords / plan.slices % plan.C;
    const int group = i / kWords / plan.slices / plan.C;
    const int word = at % 4;
    const int column = at / 4 % 8;
    const int depth = at / 32 % 2;
    const int octet = at / 64 % kS.octets;
    const int step = at / 64 / kS.octets;
    // An octet is some filters with every shift, moved down by octet % rows.
    const int m = group * kS.filters() +
                  FilterAt<kS.filters()>(octet / kS.rows * kOctetFilters +
                                         column / kS.shifts);
    const int row = kS.wide ? slice * kS.steps + step : 2 * step + depth;
    const int p = row - octet % kS.rows;
    float v[2];
    for (int e = 0; e < 2; ++e) {
      const int q =
          (kS.wide ? 8 * depth : 0) + 2 * word + e - column % kS.shifts;
      const bool exists =
          m < plan.M && p >= 0 && p < plan.K && q >= 0 && q < plan.K;
      v[e] = exists ? k[((int64_t{m} * plan.C + c) * plan.K + p) * plan.K + q] *
                          scale
                    : 0.f;
    }
    uint32_t* const to = arranged + i / kWords * (2 * kWords) + at;
    Split(v[0], v[1], to[0], to[kWords]);
  }
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_FILTERS_CUH_
