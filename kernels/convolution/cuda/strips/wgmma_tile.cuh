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
#include <type_traits>

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

// Starts the products of steps kFirst to kEnd - 1 of a slice with filters kStep
// apart, and adds them to `sum`; without kAdds the first sets it.
template <int kStep, int kFirst, int kEnd, bool kAdds = true, int kSteps,
          int kSums>
__device__ __forceinline__ void StartSteps(const uint32_t (&rows)[kSteps][4],
                                           uint64_t filters,
                                           float (&sum)[kSums]) {
#pragma unroll
  for (int s = kFirst; s < kEnd; ++s) {
    StartProduct(sum, rows[s], filters + s * kStep, kAdds || s > kFirst);
  }
}

// Waits for the sums in `part`, and adds them to `sum` by ordinary additions.
template <int kSums>
__device__ __forceinline__ void AddFinished(const float (&part)[kSums],
                                            float (&sum)[kSums]) {
  WaitForProducts<0>();
#pragma unroll
  for (int i = 0; i < kSums; ++i) sum[i] += part[i];
}

// Computes the sums of a slice, of which from[e] is the lane's first word, or
// adds them to `sum` if kAdds. The small products come first, because a sum of
// them loses least; meanwhile the large ones' inputs are loaded. A sum leaves
// the tensor cores after the large products of kRun steps; the first run is
// shorter if they do not divide the slice.
template <int kShape, int kRun, bool kAdds, int kSums>
__device__ __forceinline__ void MultiplySlice(const uint32_t (&from)[2],
                                              uint32_t low_offset,
                                              uint32_t pitch, uint64_t filters,
                                              float (&sum)[kSums]) {
  constexpr WgmmaStripsShape kS = kWgmmaStripsShapes[kShape];
  constexpr int kSteps = kS.steps;
  constexpr int kStep = kSums * 64 >> 4, kLow = kSteps * kStep;
  constexpr int kFirstRun = (kSteps - 1) % kRun + 1;
  uint32_t high[kSteps][4], low[kSteps][4];
  float part[kSums];
  float(&first)[kSums] = kAdds ? part : sum;
  LoadOperands<kS.wide>(from, low_offset, pitch, low);
  FenceProducts();
  StartSteps<kStep, 0, kSteps, /*kAdds=*/false>(low, filters, first);
  CommitProducts();
  LoadOperands<kS.wide>(from, 0, pitch, high);
  FenceProducts();
  StartSteps<kStep, 0, kSteps>(high, filters + kLow, first);
  StartSteps<kStep, 0, kFirstRun>(high, filters, first);
  CommitProducts();
  const auto run = [&](auto first_step) {
    constexpr int kFirst = decltype(first_step)::value;
    if constexpr (kFirst < kSteps) {
      if constexpr (kAdds || kFirst > kFirstRun) {
        AddFinished(part, sum);
      } else {
        // Frees the registers of the low halves.
        WaitForProducts<1>();
      }
      FenceProducts();
      StartSteps<kStep, kFirst, kFirst + kRun, /*kAdds=*/false>(high, filters,
                                                                part);
      CommitProducts();
    }
  };
  static_assert(kSteps <= kFirstRun + 4 * kRun);
  run(std::integral_constant<int, kFirstRun>());
  run(std::integral_constant<int, kFirstRun + kRun>());
  run(std::integral_constant<int, kFirstRun + 2 * kRun>());
  run(std::integral_constant<int, kFirstRun + 3 * kRun>());
  if constexpr (kAdds || kFirstRun < kSteps) {
    AddFinished(part, sum);
  } else {
    WaitForProducts<0>();
  }
}

// Computes the sums of a tile. in[e] is the shared address of the lane's first
// word of unit g + 8 * e, in the high halves; `filters` is where the group's
// begin (ColumnsAt), and kRun is as for MultiplySlice.
template <int kShape, int kRun, int kSums>
__device__ __forceinline__ void MultiplyTile(const WgmmaStripsPlan& plan,
                                             const uint32_t (&in)[2],
                                             uint32_t low_offset,
                                             uint64_t filters,
                                             float (&sum)[kSums]) {
  constexpr WgmmaStripsShape kS = kWgmmaStripsShapes[kShape];
  constexpr int kSliceFilters = 2 * kS.steps * (kSums * 64 >> 4);
  const uint32_t pitch = plan.pitch * 4;
  MultiplySlice<kShape, kRun, false>(in, low_offset, pitch, filters, sum);
  if constexpr (kS.one_slice) return;
  uint32_t from[2] = {in[0], in[1]};
  int of_channel = 0;  // slices of the channel that are done
#pragma unroll 1
  for (int left = kS.wide ? plan.C * plan.slices : plan.C; left > 1; --left) {
    uint32_t to_next = plan.plane_words * 4;
    if (kS.wide) {
      const uint32_t rows = kS.steps * pitch;
      if (++of_channel < plan.slices) {
        to_next = rows;
      } else {
        of_channel = 0;
        to_next -= (plan.slices - 1) * rows;
      }
    }
    for (uint32_t& at : from) at += to_next;
    filters += kSliceFilters;
    MultiplySlice<kShape, kRun, true>(from, low_offset, pitch, filters, sum);
  }
}

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_TILE_CUH_
