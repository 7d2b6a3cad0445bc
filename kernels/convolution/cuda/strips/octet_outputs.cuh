// How the sums of an octet of tensor_strips come to a warp's stage: as they
// are, or pooled.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_OCTET_OUTPUTS_CUH_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_OCTET_OUTPUTS_CUH_

#include "kernels/convolution/cuda/strips/mma_plan.h"
#include "kernels/cuda/activation.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// Writes the lane's sums of an octet, times `scale`, to the stage: in kR rows
// two columns, or only the first unless `second`, of each tile n from
// lane_stage[n] + at on.
template <int kR, int kNT>
__device__ __forceinline__ void StageOctet(const StripsPlan& plan,
                                           float* const (&lane_stage)[kNT],
                                           int at, bool pairs, bool second,
                                           const float (&scale)[kNT],
                                           const float (&sum)[kR / 2][kNT][4]) {
#pragma unroll
  for (int n = 0; n < kNT; ++n) {
    float* out = lane_stage[n] + at;
    if (pairs) {
#pragma unroll
      for (int j = 0; j < kR; ++j, out += plan.W_out) {
        *reinterpret_cast<float2*>(out) = {
            sum[j / 2][n][j % 2 * 2] * scale[n],
            sum[j / 2][n][j % 2 * 2 + 1] * scale[n]};
      }
    } else {
#pragma unroll
      for (int j = 0; j < kR; ++j, out += plan.W_out) {
        out[0] = sum[j / 2][n][j % 2 * 2] * scale[n];
        if (second) out[1] = sum[j / 2][n][j % 2 * 2 + 1] * scale[n];
      }
    }
  }
}

// Pools the lane's sums of an octet, of which pairs of columns and of rows are
// windows, and writes them to the stage with bias and activation applied, rows
// `columns` floats apart.
template <int kR, int kNT>
__device__ __forceinline__ void PoolOctet(Activation activation, int columns,
                                          float* const (&lane_stage)[kNT],
                                          int at, const float (&bias)[kNT],
                                          const float (&scale)[kNT],
                                          const float (&sum)[kR / 2][kNT][4]) {
  WithActivation(activation, [&](auto kActivation) {
#pragma unroll
    for (int n = 0; n < kNT; ++n) {
      float* out = lane_stage[n] + at;
#pragma unroll
      for (int j = 0; j < kR / 2; ++j, out += columns) {
        const float* const window = sum[j][n];
        const float largest =
            fmaxf(fmaxf(window[0], window[1]), fmaxf(window[2], window[3]));
        *out = Apply<kActivation.value>(largest * scale[n] + bias[n]);
      }
    }
  });
}

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_OCTET_OUTPUTS_CUH_
