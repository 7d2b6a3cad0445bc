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
// [half of the depth][column][halves]. A block arranges one filter, those that
// fill the last group as zeros.
template <int kShape>
__global__ void ArrangeWgmmaStripsFiltersKernel(
    const float* k, uint32_t* arranged, ScaledFilter* filters,
    const __grid_constant__ WgmmaStripsPlan plan) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  WaitForKernelBefore();
  LetNextKernelStart();
  constexpr WgmmaStripsShape kS = kWgmmaStripsShapes[kShape];
  constexpr int kFilters = kS.filters();
  const int m = blockIdx.x;
  const int weights = m < plan.M ? plan.C * plan.K * plan.K : 0;
  const float* const weight = k + int64_t{m} * weights;
  const FilterScale scale = ScaleFilter(weight, weights, filters + m);

  // An octet is some filters with every shift, moved down by octet % rows.
  constexpr int kOctetFilters = 8 / kS.shifts;
  constexpr int kWords = kS.steps * kS.octets * 64;  // a slice's high halves
  const int place = PlaceOf<kFilters>(m % kFilters);
  const int slices = plan.C * plan.slices;
  // Of a filter: four words of each half of the depth, shift and row.
  for (int i = threadIdx.x; i < slices * kS.steps * kS.rows * kS.shifts * 8;
       i += blockDim.x) {
    const int word = i % 4;
    const int depth = i / 4 % 2;
    const int shift = i / 8 % kS.shifts;
    const int down = i / 8 / kS.shifts % kS.rows;
    const int step = i / 8 / kS.shifts / kS.rows % kS.steps;
    const int of_slice = i / 8 / kS.shifts / kS.rows / kS.steps;
    const int slice = of_slice % plan.slices, c = of_slice / plan.slices;
    const int row = kS.wide ? slice * kS.steps + step : 2 * step + depth;
    const int p = row - down;
    float v[2];
    for (int e = 0; e < 2; ++e) {
      const int q = (kS.wide ? 8 * depth : 0) + 2 * word + e - shift;
      const bool exists =
          weights > 0 && p >= 0 && p < plan.K && q >= 0 && q < plan.K;
      v[e] = exists ? scale(weight[(c * plan.K + p) * plan.K + q]) : 0.f;
    }
    const int octet = place / kOctetFilters * kS.rows + down;
    const int column = place % kOctetFilters * kS.shifts + shift;
    uint32_t* const to =
        arranged + (int64_t{m / kFilters} * slices + of_slice) * (2 * kWords) +
        (step * kS.octets + octet) * 64 + depth * 32 + column * 4 + word;
    Split(v[0], v[1], to[0], to[kWords]);
  }
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_FILTERS_CUH_
