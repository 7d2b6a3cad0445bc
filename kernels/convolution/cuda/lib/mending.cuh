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
  constexpr int kAtOnce = kLanes == 1 ? 4 : 8;
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
  // Returns the bounds between which filter m's outputs are uncertain. Bias and
  // activation are monotonic, so an output beyond what sums of twice the least
  // certain magnitude lead to is a certain sum's. relu's 0 is certain where
  // sums of four times that magnitude lead to it, too: if the sum without
  // losses is more, its own sum is certain; otherwise it leads to 0 as well.
  __device__ __forceinline__ OutputBounds Bounds(const MendPlan& plan, int m,
                                                 bool everywhere) const {
    const float least = LeastCertain(plan, m);
    if (least == 0) return {0, 0, OutputBounds::kNowhere};
    const Activation activation = plan.epilogue.activation;
    const float bias =
        plan.epilogue.bias == nullptr ? 0 : plan.epilogue.bias[m];
    OutputBounds bounds = {Apply(activation, bias - 2 * least),
                           Apply(activation, bias + 2 * least),
                           OutputBounds::kAroundLossyInputs};
    if (activation == Activation::kRelu && bias < -4 * least) {
      bounds.lower = INFINITY;  // all but NaN are less
    }
    if (everywhere || filters[m].lossy > 0 ||
        !CanScaleBack(exponent, filters[m].exponent)) {
      bounds.look = OutputBounds::kEverywhere;
    }
    return bounds;
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
  // Whether an output belongs to this tile, and not to another that covers it,
  // too. If both tiles computed it, its last bits would depend on which of them
  // wrote last.
  __device__ __forceinline__ bool IsOwn(const MendPlan& plan, int h,
                                        int w) const {
    return area.Has(plan.pool * h, plan.pool * w);
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

  // Computes those of a warp's outputs that are `found`, each lane's own where
  // they are many.
  __device__ __forceinline__ void ComputeFoundOrMany(const MendPlan& plan,
                                                     bool found, int m, int h,
                                                     int w) const {
    constexpr int kMany = 8;
    if (__popc(__ballot_sync(0xffffffff, found)) <= kMany) {
      ComputeFound(plan, found, m, h, w);
    } else if (found) {
      Compute<1>(plan, m, h, w, 0);
    }
  }

  // Mends filters of which all outputs are looked at; `bounds` are those of the
  // filters from the first one on. A warp takes 32 outputs of a filter at a
  // time, and loads those of several filters or places together, so that it
  // waits for them once.
  __device__ __forceinline__ void MendEverywhere(
      const MendPlan& plan, const OutputBounds* bounds) const {
    constexpr int kAtOnce = 8;
    const int height = rows(plan), width = columns(plan);
    const int count = height * width, pieces = CeilDivide(count, 32);
    if (count <= 0) return;
    const int end = end_filter - first_filter;
    const int warp = thread / 32, lane = thread % 32, warps = threads / 32;
    float* const first = Output(plan, first_filter, 0, 0);
    const int64_t plane = int64_t{plan.out_height} * plan.out_width;
    const bool whole_rows = width == plan.out_width;
    // From a warp's piece to its next, of filter `m` from the first one on.
    const int step_m = warps / pieces, step = warps - step_m * pieces;
    int m = warp / pieces, piece = warp - m * pieces;
    const auto advance = [&] {
      m += step_m, piece += step;
      if (piece >= pieces) piece -= pieces, ++m;
    };
#pragma unroll 1
    while (m < end) {
      const int begin_m = m, begin_piece = piece;
      float outputs[kAtOnce];
      uint32_t looked_at = 0;
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j, advance()) {
        outputs[j] = 0;
        const int i = 32 * piece + lane;
        if (m < end && i < count &&
            bounds[m].look == OutputBounds::kEverywhere) {
          looked_at |= 1u << j;
          int at = i;
          if (!whole_rows) at += i / width * (plan.out_width - width);
          outputs[j] = __ldcg(first + m * plane + at);
        }
      }
      m = begin_m, piece = begin_piece;
      uint32_t found = 0;
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j, advance()) {
        if ((looked_at >> j & 1) != 0 && IsUncertain(bounds[m], outputs[j])) {
          found |= 1u << j;
        }
      }
      if (!__any_sync(0xffffffff, found != 0)) continue;
      const int next_m = m, next_piece = piece;
      m = begin_m, piece = begin_piece;
#pragma unroll 1
      for (int j = 0; j < kAtOnce; ++j, advance()) {
        const int i = 32 * piece + lane, h = i / width, w = i - h * width;
        ComputeFoundOrMany(plan, (found >> j & 1) != 0 && IsOwn(plan, h, w),
                           first_filter + m, h, w);
      }
      m = next_m, piece = next_piece;
    }
  }

  // An output of the filter `first_filter + m`, or none if m < 0.
  struct Place {
    int m, h, w;
  };
  // Mends the outputs that lossy inputs reach, of filters of which only those
  // are looked at. The inputs come in any order, and several reach the same
  // output, so all outputs are computed in the same way: otherwise results
  // would differ from run to run.
  __device__ __forceinline__ void MendAround(const MendPlan& plan,
                                             const OutputBounds* bounds,
                                             const int* inputs,
                                             int inputs_count) const {
    const int end = end_filter - first_filter;
    const int height = rows(plan), width = columns(plan);
    const int square = plan.span * plan.span,
              count = inputs_count * end * square;
    const auto place_of = [&](int e) -> Place {
      if (e >= count) return {-1, 0, 0};
      const int filter = plan.by_square.Quotient(e);
      const int input = filter / end;
      const int from = e - filter * square, dh = plan.by_span.Quotient(from);
      const int row = plan.by_width.Quotient(inputs[input]);
      const int column = inputs[input] - row * plan.W;
      const int m = filter - input * end;
      const int h = plan.by_pool.Quotient(max(row - plan.K + 1, 0)) + dh;
      const int w = plan.by_pool.Quotient(max(column - plan.K + 1, 0)) + from -
                    dh * plan.span;
      const bool reached = h <= plan.by_pool.Quotient(row) && h < height &&
                           w <= plan.by_pool.Quotient(column) && w < width;
      const bool looked_at =
          reached && bounds[m].look == OutputBounds::kAroundLossyInputs;
      return {looked_at ? m : -1, h, w};
    };
    float* const outputs = Output(plan, first_filter, 0, 0);
    const int64_t plane = int64_t{plan.out_height} * plan.out_width;
    const auto is_uncertain = [&](const Place& at, float output) {
      return at.m >= 0 && IsUncertain(bounds[at.m], output);
    };
    const auto load = [&](const Place& at) {
      return at.m < 0 ? 0
                      : __ldcg(outputs + at.m * plane + at.h * plan.out_width +
                               at.w);
    };
    constexpr int kAtOnce = 4;
    int first = thread;
#pragma unroll 1
    while (first - thread % 32 < count) {
      uint32_t found = 0;
      int looks = 1;
      if (first - thread % 32 + threads < count) {
        float v[kAtOnce];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          v[j] = load(place_of(first + j * threads));
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          if (is_uncertain(place_of(first + j * threads), v[j])) {
            found |= 1u << j;
          }
        }
        looks = kAtOnce;
      } else {
        const Place at = place_of(first);
        found = is_uncertain(at, load(at));
      }
#pragma unroll 1
      for (int j = 0; __any_sync(0xffffffff, found >> j != 0); ++j) {
        const Place at = place_of(first + j * threads);
        ComputeFound(plan, (found >> j & 1) != 0 && IsOwn(plan, at.h, at.w),
                     first_filter + at.m, at.h, at.w);
      }
      first += looks * threads;
    }
  }
  static __device__ __forceinline__ bool IsUncertain(const OutputBounds& bounds,
                                                     float output) {
    return !(output < bounds.lower || output > bounds.upper);
  }
};

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_MENDING_CUH_
