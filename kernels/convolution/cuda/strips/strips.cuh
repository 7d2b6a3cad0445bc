// What tensor_strips and wgmma_strips share: the strips of an image, how a
// strip's inputs are split to a slab, and the pieces in which outputs go to
// memory. A worker is a warp there, or a warpgroup. Plan is StripsPlan or
// WgmmaStripsPlan.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_STRIPS_CUH_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_STRIPS_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/cuda/activation.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// Where a float stands among those of eight neighbours that are 32 bytes.
__device__ __forceinline__ int Skew(const float* p) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(p) / 4 % 8);
}

// The rows (or columns) of y for `size` rows of sums. With kPooled the epilogue
// pools windows of 2 x 2 (halving.h).
template <bool kPooled>
__device__ __forceinline__ int OutputOf(int size) {
  return kPooled ? size / 2 : size;
}

// An item: the strip, and the groups of filters.
struct StripItem {
  const float* from;       // the strip's first input, of channel 0
  int input_rows, inputs;  // of a channel, without those beyond the image
  float* to;               // its first output, of filter 0
  int rows;                // of sums
  int first_group, end_group;
};

// The item with number `rest` among those of `image`: a strip's parts of the
// groups of filters follow each other.
template <bool kPooled, typename Plan>
__device__ __forceinline__ StripItem MakeStripItem(const Plan& plan,
                                                   int strip_rows,
                                                   int64_t image, int rest,
                                                   const float* x, float* y) {
  const int strip = plan.parts == 1 ? rest : rest / plan.parts;
  const int part = rest - strip * plan.parts;
  const int h = strip * strip_rows;
  StripItem item;
  item.from = x + image * plan.C * plan.H * plan.W + int64_t{h} * plan.W;
  item.input_rows = min(strip_rows + plan.K - 1, plan.H - h);
  item.inputs = item.input_rows * plan.W;
  if constexpr (kPooled) {
    item.to = y + image * plan.M * (plan.H_out / 2 * (plan.W_out / 2)) +
              int64_t{h / 2} * (plan.W_out / 2);
  } else {
    item.to = y + image * plan.M * (plan.H_out * plan.W_out) +
              int64_t{h} * plan.W_out;
  }
  item.rows = min(strip_rows, plan.H_out - h);
  item.first_group = part * plan.part_groups;
  item.end_group = min(item.first_group + plan.part_groups, plan.filter_groups);
  return item;
}

// Word i of a strip of one channel whose `inputs` inputs begin at `from`: the
// inputs of columns 2 * c and 2 * c + 1 of a row. With `pairs` they are one
// aligned word there, too. The last word of a row of odd length has any second
// input, since that is multiplied by zero.
template <typename Plan>
__device__ __forceinline__ float2 LoadWord(const Plan& plan, const float* from,
                                           int inputs, bool pairs, int i) {
  if (pairs) return reinterpret_cast<const float2*>(from)[i];
  const int element = 2 * i - plan.W % 2 * Divide(i, plan.pitch_magic);
  return {from[element], element + 1 < inputs ? from[element + 1] : 0.f};
}

// Splits a strip, scaled by a power of two, to a slab: the high halves to words
// at `high`, the low ones to words plan.slab_words later. `certain` is at first
// that of the strip before, whose scale mostly fits. It becomes this strip's,
// which depends on its own inputs only; its exponent is kNotScalable if there
// are infinities or NaN. for_words(put) calls put(i, v) for every word i of
// this thread, one of `threads`, or put(i, {0, 0}, false) where there is none;
// of_all(extent) returns the extent of all threads, which all call it; plane(c)
// points to the strip's `inputs` inputs of channel c.
template <typename Plan, typename Plane, typename ForWords, typename OfAll>
__device__ __forceinline__ void SplitStrip(const Plan& plan, const Plane& plane,
                                           int inputs, int tid, int threads,
                                           uint32_t* high, Certain& certain,
                                           const ForWords& for_words,
                                           const OfAll& of_all) {
  uint32_t* const low = high + plan.slab_words;
  if (certain.exponent == kNotScalable) certain.exponent = kUsualExponent;
  for (;;) {
    const float scale = PowerOfTwo(certain.exponent);
    __half2 most_halves = __half2half2(__ushort_as_half(0));
    Extent extent;  // `most` is that of the high halves
    for_words([&](int i, float2 v, bool is_there = true) {
      uint32_t h, l;
      Split(v.x * scale, v.y * scale, h, l);
      if (is_there) high[i] = h, low[i] = l;
      most_halves = __hmax2_nan(most_halves,
                                __habs2(reinterpret_cast<const __half2&>(h)));
      extent.AddLeast(v.x), extent.AddLeast(v.y);
    });
    // Positive halves compare as their bits do, and NaN is above them. If the
    // largest lies between 2^12 and 2^15, and not at the ends, to which it may
    // have been rounded, the exponent is right.
    constexpr uint32_t kTwoTo12 = 0x6c00, kTwoTo15 = 0x7800;
    constexpr int kMostExponent = 127;  // of InputExponent
    extent.most = __half_as_ushort(
        __hmax_nan(__low2half(most_halves), __high2half(most_halves)));
    extent = of_all(extent);
    certain.lossy = extent.Lossy(certain.exponent);
    if (extent.most > kTwoTo12 && extent.most < kTwoTo15 &&
        certain.exponent < kMostExponent) {
      return;
    }
    Extent exact;
    for (int c = 0; c < plan.C; ++c) {
      const float* const from = plane(c);
      for (int i = tid; i < inputs; i += threads) exact.Add(from[i]);
    }
    const uint32_t most = of_all(exact).Most();
    const int right = most == 0        ? certain.exponent
                      : IsFinite(most) ? InputExponent(most)
                                       : kNotScalable;
    const bool fits = right == certain.exponent || right == kNotScalable;
    certain.exponent = right;
    if (fits) return;
  }
}

// For plans with an epilogue: pooled sums of filters `first` to `end` - 1 in
// `rows` rows, which at(m, h, w) points to, become outputs. Those that are not
// certain are computed by the definition; then bias and activation are applied.
// Whole warps call this, `tid` being a thread's place among them.
template <typename Plan, typename At>
__device__ __forceinline__ void FinishPooled(
    const Plan& plan, const ScaledFilter* filters, const Certain& certain,
    const float* from, const float* k, int rows, int first, int end, int tid,
    int threads, const At& at) {
  const int64_t weights = int64_t{plan.C} * plan.K * plan.K;
  const int columns = plan.W_out / 2;
  const int count = rows / 2 * columns;
#pragma unroll 1
  for (int m = first; m < end; ++m) {
    const float least = certain.Least(filters[m]);
    const auto compute = [&](int e) {
      const int h = e / columns, w = e % columns;
      float largest = -INFINITY;
#pragma unroll 1
      for (int i = 0; i < 4; ++i) {
        const float* const in =
            from + int64_t{2 * h + i / 2} * plan.W + 2 * w + i % 2;
        largest = MaxOrNan(ExactOutput(plan, in, k + m * weights), largest);
      }
      if (threadIdx.x % 32 == 0) *at(m, h, w) = largest;
    };
    const auto uncertain = [&](int e) {
      return !IsCertain(*at(m, e / columns, e % columns), least);
    };
    ForUncertain(tid & ~31, count, threads, uncertain, compute);
    __syncwarp();
    const float bias =
        plan.epilogue.bias != nullptr ? plan.epilogue.bias[m] : 0;
#pragma unroll 1
    for (int e = tid; e < count; e += threads) {
      float* const to = at(m, e / columns, e % columns);
      *to = Apply(plan.epilogue.activation, *to + bias);
    }
  }
}

// Replaces those outputs of an item that are not certain, after all were
// written; with kPooled, pooled sums were written (FinishPooled). Called
// rarely, it must not take registers from the rest.
template <bool kPooled, typename Plan>
__device__ __noinline__ void CheckStrip(const Plan& plan,
                                        const ScaledFilter* filters,
                                        Certain certain, StripItem item,
                                        const float* k, int group_filters,
                                        int tid, int threads) {
  const int first = item.first_group * group_filters;
  const int end = min(item.end_group * group_filters, plan.M);
  const int columns = OutputOf<kPooled>(plan.W_out);
  const int area = OutputOf<kPooled>(plan.H_out) * columns;
  const auto at = [&](int m, int h, int w) {
    return item.to + int64_t{m} * area + h * columns + w;
  };
  if constexpr (kPooled) {
    FinishPooled(plan, filters, certain, item.from, k, item.rows, first, end,
                 tid, threads, at);
  } else {
    ComputeUncertain(plan, filters, certain, item.from, k, item.rows, columns,
                     first, end, tid, threads, at);
  }
}

// What CheckStrip wants to know of a worker's strip, where registers are scarce
// and it waits in shared memory.
struct StripToCheck {
  StripItem item;
  Certain certain;
  bool doubt;  // whether some outputs may not be certain
};

#if __CUDA_ARCH__ >= 900
// Starts to write a piece, `count` floats from a stage in shared memory, where
// they begin as far from a multiple of 32 bytes as in the output: the copy
// engine writes whole vectors, and lanes write what is left at the ends. Four
// lanes call it, each with another `part`.
__device__ __forceinline__ void StorePiece(const float* in, float* out,
                                           int count, int part) {
  const int head = min(-Skew(out) & 3, count);
  const int middle = (count - head) & ~3;
  if (part == 3) {
    if (middle > 0) BulkStore(out + head, in + head, middle * 4);
  } else {
    if (part < head) out[part] = in[part];
    const int tail = head + middle + part;
    if (tail < count) out[tail] = in[tail];
  }
}
#endif

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_STRIPS_CUH_
