// What the threads that mend a tile know of it, and how they look at an output
// and compute it again (mend.cuh).
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_MENDING_CUH_
#define KERNELS_CONVOLUTION_CUDA_LIB_MENDING_CUH_

#include <cmath>
#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/mender.h"
#include "kernels/convolution/cuda/lib/output_tiles.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/scaling.h"
#include "kernels/cuda/activation.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// The inputs from a place of an image on. If the problem is kPadded, zeros
// stand around the image that is in memory (MendPlan::inset).
template <bool kPadded>
struct InputsFrom {
  const MendPlan& plan;
  // Channel 0 at that place; if kPadded, of the image in memory, to which the
  // place is relative.
  const float* first;
  int row, column;

  // Channel c's input at (h, w) from there if i < end, otherwise 0.
  __device__ __forceinline__ float LoadIfBelow(int i, int end, int c, int h,
                                               int w) const {
    if constexpr (kPadded) {
      const Inset& inset = plan.inset;
      const int y = row + h, x = column + w;
      const bool inside =
          static_cast<unsigned>(y) < static_cast<unsigned>(inset.height) &&
          static_cast<unsigned>(x) < static_cast<unsigned>(inset.width);
      return cuda::LoadIfBelow(
          i, inside ? end : i,
          first + (int64_t{c} * inset.height + y) * inset.width + x);
    }
    return cuda::LoadIfBelow(i, end,
                             first + (int64_t{c} * plan.H + h) * plan.W + w);
  }
};

// A sum by the definition of the inputs under the filter `k`. With kLanes = 32
// the lanes of a warp, which all call this, share the terms.
template <int kLanes, bool kPadded>
__device__ __forceinline__ float ExactSum(const MendPlan& plan,
                                          const InputsFrom<kPadded>& in,
                                          const float* k, int lane) {
  constexpr int kAtOnce = 4;
  const int K = plan.K, terms = plan.C * K * K;
  // From a lane's term to its next.
  const int step_q = kLanes % K, step_p = kLanes / K % K;
  const int step_c = kLanes / K / K;
  int q = lane % K, p = lane / K % K, c = lane / K / K;
  float sum = 0;
#pragma unroll 1
  for (int first = lane; first < terms; first += kAtOnce * kLanes) {
    float a[kAtOnce], b[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = first + j * kLanes;
      a[j] = in.LoadIfBelow(i, terms, c, p, q);
      b[j] = LoadIfBelow(i, terms, k + i);
      q += step_q, p += step_p, c += step_c;
      if (q >= K) q -= K, ++p;
      if (p >= K) p -= K, ++c;
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) sum = fmaf(a[j], b[j], sum);
  }
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffff, sum, distance);
  }
  return sum;
}

// What the threads that mend a tile know of it.
template <bool kPadded>
struct Mending {
  int thread, threads;
  const float *x, *k;
  float* y;
  const ScaledFilter* filters;
  int first_filter, end_filter;
  TileArea area;
  int exponent;
  int lossy;   // inputs
  float lost;  // at most, by one of them
  // Whether inputs are so large that most of the others but zeros are lossy. A
  // sum that such an input dominates lost bits in each step (docs/numerics.md).
  bool dominated;

  // In outputs, not sums. The last window of a row or column of the image may
  // have less than its size, or the image's last sums may be in none.
  __device__ __forceinline__ int rows(const MendPlan& plan) const {
    return min(CeilDivide(area.rows, plan.pool),
               plan.out_height - area.row / plan.pool);
  }
  __device__ __forceinline__ int columns(const MendPlan& plan) const {
    return min(CeilDivide(area.columns, plan.pool),
               plan.out_width - area.column / plan.pool);
  }

  // The least certain magnitude of filter m's sums: 0 if all are certain,
  // infinity if none is.
  __device__ __forceinline__ float LeastCertain(const MendPlan& plan,
                                                int m) const {
    const ScaledFilter filter = filters[m];
    if (dominated || !CanScaleBack(exponent, filter.exponent)) return INFINITY;
    const int terms = plan.C * plan.K * plan.K;
    const float sum = LeastCertainSum(filter.lossy) +
                      LeastCertainSum(min(lossy, terms), lost);
    return sum == 0
               ? 0
               : fmaxf(sum * ScaleBack(exponent, ExponentBits(filter.exponent)),
                       __uint_as_float(1));
  }
  __device__ __forceinline__ float* Output(const MendPlan& plan, int m, int h,
                                           int w) const {
    return y +
           ((area.image * plan.M + m) * plan.out_height + area.row / plan.pool +
            h) *
               plan.out_width +
           area.column / plan.pool + w;
  }
  // The inputs from (h, w) of the tile on.
  __device__ __forceinline__ InputsFrom<kPadded> Inputs(const MendPlan& plan,
                                                        int h, int w) const {
    if constexpr (kPadded) {
      const Inset& inset = plan.inset;
      return {plan,
              x + area.image * plan.C * (int64_t{inset.height} * inset.width),
              area.row + h - inset.top, area.column + w - inset.left};
    }
    return {plan,
            x + (area.image * plan.C * plan.H + area.row + h) * plan.W +
                area.column + w,
            0, 0};
  }
  // Whether an output is certain. Bias and activation are monotonic, so an
  // output beyond what sums of twice the least certain magnitude lead to is a
  // certain sum's. relu's 0 is certain where sums of four times that magnitude
  // lead to it, too: if the sum without losses is more, its own sum is certain;
  // otherwise it leads to 0 as well.
  __device__ __forceinline__ bool IsCertain(const MendPlan& plan, int m,
                                            float least, float output) const {
    const Activation activation = plan.epilogue.activation;
    const float bias =
        plan.epilogue.bias == nullptr ? 0 : plan.epilogue.bias[m];
    return output < Apply(activation, bias - 2 * least) ||
           output > Apply(activation, bias + 2 * least) ||
           (activation == Activation::kRelu && output == 0 &&
            bias < -4 * least);
  }
  // Computes an output. With kLanes = 32 all lanes of a warp call this.
  template <int kLanes>
  __device__ __forceinline__ void Compute(const MendPlan& plan, int m, int h,
                                          int w, int lane) const {
    float largest = -INFINITY;
#pragma unroll 1
    for (int i = 0; i < plan.pool * plan.pool; ++i) {
      const int row = plan.pool * h + i / plan.pool;
      const int column = plan.pool * w + i % plan.pool;
      if (area.row + row >= plan.tiles.height ||
          area.column + column >= plan.tiles.width) {
        continue;
      }
      const float sum =
          ExactSum<kLanes>(plan, Inputs(plan, row, column),
                           k + int64_t{m} * plan.C * plan.K * plan.K, lane);
      largest = plan.pool == 1 ? sum : MaxOrNan(sum, largest);
    }
    if (plan.epilogue.bias != nullptr) largest += plan.epilogue.bias[m];
    if (lane == 0) {
      *Output(plan, m, h, w) = Apply(plan.epilogue.activation, largest);
    }
  }
  // Each lane of a warp has an output, or none, to be computed by the whole
  // warp.
  __device__ __forceinline__ void ComputeFound(const MendPlan& plan, bool found,
                                               int m, int h, int w) const {
    const int own_lane = thread % 32;
#pragma unroll 1
    for (uint32_t left = __ballot_sync(0xffffffff, found); left != 0;
         left &= left - 1) {
      const int lane = __ffs(left) - 1;
      Compute<32>(plan, __shfl_sync(0xffffffff, m, lane),
                  __shfl_sync(0xffffffff, h, lane),
                  __shfl_sync(0xffffffff, w, lane), own_lane);
    }
  }

  // Looks at all outputs of filter m. Where many of a warp's are to be
  // computed, each lane computes its own.
  __device__ __forceinline__ void MendFilter(const MendPlan& plan,
                                             int m) const {
    const float least = LeastCertain(plan, m);
    if (least == 0) return;
    const int count = rows(plan) * columns(plan);
#pragma unroll 1
    for (int first = thread / 32 * 32; first < count; first += threads) {
      const int e = first + thread % 32;
      const int h = e / columns(plan), w = e - h * columns(plan);
      const bool found = e < count && !IsCertain(plan, m, least,
                                                 __ldcg(Output(plan, m, h, w)));
      constexpr int kMany = 8;
      if (__popc(__ballot_sync(0xffffffff, found)) <= kMany) {
        ComputeFound(plan, found, m, h, w);
      } else if (found) {
        Compute<1>(plan, m, h, w, 0);
      }
    }
  }
  // Looks at the outputs that lossy inputs reach, of all filters but those of
  // which all outputs are looked at. The inputs come in any order, and several
  // reach the same output, so all outputs are computed in the same way:
  // otherwise results would differ from run to run.
  __device__ __forceinline__ void MendAround(const MendPlan& plan,
                                             const int* places,
                                             int count) const {
    const int pool = plan.pool, K = plan.K;
    // Outputs side by side that an input reaches, of which the last may be
    // none.
    const int span = (K + pool - 2) / pool + 1;
    const int around = span * span * (end_filter - first_filter);
#pragma unroll 1
    for (int first = thread / 32 * 32; first < count * around;
         first += threads) {
      const int e = first + thread % 32;
      const int place = places[min(e / around, count - 1)];
      const int row = place / plan.W, column = place - row * plan.W;
      const int m = first_filter + e % around / span / span;
      const int h = max(row - K + 1, 0) / pool + e / span % span;
      const int w = max(column - K + 1, 0) / pool + e % span;
      bool found = false;
      if (e < count * around && h <= row / pool && h < rows(plan) &&
          w <= column / pool && w < columns(plan) && !LookAllOver(m)) {
        found = !IsCertain(plan, m, LeastCertain(plan, m),
                           __ldcg(Output(plan, m, h, w)));
      }
      ComputeFound(plan, found, m, h, w);
    }
  }
  // Whether outputs of filter m may be uncertain wherever they are.
  __device__ __forceinline__ bool LookAllOver(int m) const {
    return filters[m].lossy > 0 || !CanScaleBack(exponent, filters[m].exponent);
  }
};

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_MENDING_CUH_
