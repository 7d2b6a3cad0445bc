// The products of wgmma_strips: 64 units by the filters of a group, for all
// channels.
//
// A product is m64nNk16. Its rows are units, of which each warp of the
// warpgroup has 16: lane 4 * g + t loads words t and t + 4 of the depth of
// units g and g + 8 to registers. Its columns, in shared memory, are octets: a
// few filters with every shift, moved down by 0 to rows - 1. Of an octet the
// lane has the sums of columns 2 * t and 2 * t + 1.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_TILE_CUH_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_TILE_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/strips/wgmma_plan.h"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

// Loads a slice's inputs of two units as the operands of its steps. from[e] is
// the shared address of the lane's first word of unit g + 8 * e, and input rows
// are `pitch` bytes apart.
template <bool kWide, int kSteps>
__device__ __forceinline__ void LoadOperands(const uint32_t (&from)[2],
                                             uint32_t offset, uint32_t pitch,
                                             uint32_t (&to)[kSteps][4]) {
  uint32_t at[2] = {from[0] + offset, from[1] + offset};
  // In assembly, or else the compiler keeps the addresses of all rows in
  // registers.
  const auto next_row = [&](int e) {
    asm volatile("add.u32 %0, %0, %1;" : "+r"(at[e]) : "r"(pitch));
  };
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        to[s][2 * half + e] =
            kWide && half == 1 ? LoadShared<16>(at[e]) : LoadShared<0>(at[e]);
        if (!kWide || half == 1) next_row(e);
      }
    }
  }
}

// Starts the products of a slice's steps with filters kStep apart.
template <int kStep, int kSteps, int kSums>
__device__ __forceinline__ void StartSteps(const uint32_t (&rows)[kSteps][4],
                                           uint64_t filters,
                                           float (&sum)[kSums]) {
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    StartProduct(sum, rows[s], filters + s * kStep);
  }
}

// Computes the sums of a tile. in[e] is the shared address of the lane's first
// word of unit g + 8 * e, in the high halves; `filters` is where the group's
// begin (ColumnsAt). A slice's small products come first, because a sum of them
// loses least; meanwhile the large ones' inputs are loaded.
template <int kShape, int kSums>
__device__ __forceinline__ void MultiplyTile(const WgmmaStripsPlan& plan,
                                             const uint32_t (&in)[2],
                                             uint32_t low_offset,
                                             uint64_t filters,
                                             float (&sum)[kSums]) {
  constexpr WgmmaStripsShape kS = kWgmmaStripsShapes[kShape];
  constexpr int kSteps = kS.steps;
  constexpr int kStep = kSums * 64 >> 4, kLow = kSteps * kStep;
  const uint32_t pitch = plan.pitch * 4;
  uint32_t from[2] = {in[0], in[1]};
#pragma unroll
  for (float& one : sum) one = 0;
  int of_channel = 0;  // slices of the channel that are done
#pragma unroll 1
  for (int left = kS.wide ? plan.C * plan.slices : plan.C; left > 0; --left) {
    uint32_t high[kSteps][4], low[kSteps][4];
    LoadOperands<kS.wide>(from, low_offset, pitch, low);
    FenceProducts();
    StartSteps<kStep>(low, filters, sum);
    CommitProducts();
    LoadOperands<kS.wide>(from, 0, pitch, high);
    FenceProducts();
    StartSteps<kStep>(high, filters + kLow, sum);
    StartSteps<kStep>(high, filters, sum);
    CommitProducts();
    filters += 2 * kLow;
    uint32_t to_next = plan.plane_words * 4;
    if (kS.wide) {
      const uint32_t rows = kSteps * pitch;
      if (++of_channel < plan.slices) {
        to_next = rows;
      } else {
        of_channel = 0;
        to_next -= (plan.slices - 1) * rows;
      }
    }
    for (uint32_t& at : from) at += to_next;
    WaitForProducts<0>();
  }
}

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_TILE_CUH_
