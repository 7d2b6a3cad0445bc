// What tensor_strips and wgmma_strips share: the strips of an image, how a
// strip's inputs are split to a slab, and the pieces in which outputs go to
// memory. A worker is a warp there, or a warpgroup. Plan is StripsPlan or
// WgmmaStripsPlan.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_STRIPS_CUH_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_STRIPS_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"

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
  int64_t strip;      // its number in the batch
  const float* from;  // its first input in memory, of channel 0
  int input_rows;     // without those beyond the image
  int above;          // rows of these before the first in memory: zeros
  int inputs;         // of a channel, in memory
  float* to;          // its first output, of filter 0
  int rows;           // of sums
  int first_group, end_group;
};

// The item with number `rest` among those of `image`: a strip's parts of the
// groups of filters follow each other.
template <bool kPooled, bool kPadded, typename Plan>
__device__ __forceinline__ StripItem MakeStripItem(const Plan& plan,
                                                   int strip_rows,
                                                   int64_t image, int rest,
                                                   const float* x, float* y) {
  const int strip = plan.parts == 1 ? rest : rest / plan.parts;
  const int part = rest - strip * plan.parts;
  const int h = strip * strip_rows;
  StripItem item;
  item.strip = image * plan.strips + strip;
  item.input_rows = min(strip_rows + plan.K - 1, plan.H - h);
  if constexpr (kPadded) {
    // Its rows of the image in memory.
    const Inset& inset = plan.inset;
    const int first = max(h - inset.top, 0);
    const int end = min(h - inset.top + item.input_rows, inset.height);
    item.above = min(first - (h - inset.top), item.input_rows);
    item.from = x + image * plan.C * plan.area() + int64_t{first} * inset.width;
    item.inputs = max(end - first, 0) * inset.width;
  } else {
    item.above = 0;
    item.from = x + image * plan.C * plan.H * plan.W + int64_t{h} * plan.W;
    item.inputs = item.input_rows * plan.W;
  }
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

// How the words of a strip are loaded.
enum class WordLoads {
  kPairs,    // by one load each, since they are aligned words in memory
  kElements  // by two
};
template <bool kPadded, typename Plan>
__device__ __forceinline__ WordLoads WordLoadsOf(const Plan& plan,
                                                 const float* x) {
  return (kPadded ? plan.inset.width : plan.W) % 2 == 0 &&
                 reinterpret_cast<uintptr_t>(x) % 8 == 0
             ? WordLoads::kPairs
             : WordLoads::kElements;
}

// Calls use(loads) with a constant, so that each kind has code of its own.
template <typename Use>
__device__ __forceinline__ void WithLoads(WordLoads loads, const Use& use) {
  if (loads == WordLoads::kPairs) {
    use(std::integral_constant<WordLoads, WordLoads::kPairs>());
  } else {
    use(std::integral_constant<WordLoads, WordLoads::kElements>());
  }
}

// Word i of a strip of one channel whose inputs begin at `from`: the inputs of
// columns 2 * c and 2 * c + 1 of a row. The last word of a row of odd length
// has any second input, since that is multiplied by zero.
template <typename Plan>
__device__ __forceinline__ float2 LoadWord(const Plan& plan,
                                           const StripItem& item,
                                           const float* from, WordLoads loads,
                                           int i) {
  if (loads == WordLoads::kPairs) {
    return reinterpret_cast<const float2*>(from)[i];
  }
  const int element = 2 * i - plan.W % 2 * Divide(i, plan.pitch_magic);
  return {from[element], element + 1 < item.inputs ? from[element + 1] : 0.f};
}

// Where two inputs of a row go in a slab: to a word, or, shifted, to its second
// half and the first half of the next.
struct SlabWord {
  int at;
  bool exists = true;
};
template <bool kShifted>
__device__ __forceinline__ void StoreSlabWord(uint32_t halves, uint32_t* word) {
  if constexpr (kShifted) {
    uint16_t* const half = reinterpret_cast<uint16_t*>(word);
    half[1] = halves;
    half[2] = halves >> 16;
  } else {
    *word = halves;
  }
}

// Splits a strip, scaled by 2^exponent, to a slab: the high halves to words at
// `high`, the low ones to words plan.slab_words later. `exponent` is at first
// that of the strip before, which mostly fits. It becomes that of this strip's
// own largest input, or kNotScalable if there are infinities or NaN. Returns
// whether inputs are lossy. for_words(put) calls put(word, v, shifted) for
// every SlabWord of this thread, one of `threads`, with zeros for those that do
// not exist; `shifted` is a constant. largest(v) returns the largest v of all
// threads, which all call it; plane(c) points to the strip's `inputs` inputs of
// channel c. With kExact inputs are not called lossy that merely are small but
// have few bits; that takes for_words a second time, and registers where it has
// a loop.
template <bool kExact, typename Plan, typename Plane, typename ForWords,
          typename Largest>
__device__ __forceinline__ bool SplitStrip(const Plan& plan, const Plane& plane,
                                           int inputs, int tid, int threads,
                                           uint32_t* high, int& exponent,
                                           const ForWords& for_words,
                                           const Largest& largest) {
  uint32_t* const low = high + plan.slab_words;
  if (exponent == kNotScalable) exponent = kUsualExponent;
  for (;;) {
    const float scale = PowerOfTwo(exponent);
    __half2 most_halves = __half2half2(__ushort_as_half(0));
    Extent extent;
    for_words([&](SlabWord word, float2 v, auto shifted) {
      uint32_t h, l;
      Split(v.x * scale, v.y * scale, h, l);
      if (word.exists) {
        StoreSlabWord<shifted.value>(h, high + word.at);
        StoreSlabWord<shifted.value>(l, low + word.at);
      }
      most_halves = __hmax2_nan(most_halves,
                                __habs2(reinterpret_cast<const __half2&>(h)));
      extent.AddLeast(v.x), extent.AddLeast(v.y);
    });
    // Positive halves compare as their bits do, and NaN is above them. If the
    // largest lies between 1.25 * 2^12 and 1.25 * 2^15, and not at the ends, to
    // which it may have been rounded, the exponent is right.
    constexpr uint32_t kLeast = 0x6d00, kMost = 0x7900;
    constexpr int kMostExponent = 127;  // of InputExponent
    const uint32_t most_half = __half_as_ushort(
        __hmax_nan(__low2half(most_halves), __high2half(most_halves)));
    // The mark of small inputs stands above the bits of a half: both come from
    // all threads at once, and the largest apart only where there is a mark.
    constexpr uint32_t kMark = 0x10000;
    uint32_t most_of_all =
        largest(most_half | (extent.Lossy(exponent) ? kMark : 0));
    bool lossy = most_of_all >= kMark;
    if (lossy) {
      most_of_all = largest(most_half);
      if constexpr (kExact) {
        bool lost = false;
        for_words([&](SlabWord, float2 v, auto) {
          lost |= IsLossy(v.x, v.x * scale) || IsLossy(v.y, v.y * scale);
        });
        lossy = largest(lost) != 0;
      }
    }
    if (most_of_all > kLeast && most_of_all < kMost &&
        exponent < kMostExponent) {
      return lossy;
    }
    Extent exact;
    for (int c = 0; c < plan.C; ++c) {
      const float* const from = plane(c);
      for (int i = tid; i < inputs; i += threads) exact.Add(from[i]);
    }
    const uint32_t most = largest(exact.Most());
    const int right = most == 0        ? exponent
                      : IsFinite(most) ? InputExponent(most)
                                       : kNotScalable;
    const bool fits = right == exponent || right == kNotScalable;
    exponent = right;
    if (fits) return lossy;
  }
}

// Lists an item's strip if some of its outputs may not be certain, where groups
// have kFilters filters. One thread of its worker calls this.
template <int kFilters, typename Plan>
__device__ __forceinline__ void ListIfDoubtful(const Plan& plan,
                                               const StripItem& item,
                                               int exponent, bool lossy,
                                               const AllFilters& all_filters,
                                               const DoubtfulTiles& doubtful) {
  if (lossy || all_filters.Doubt(exponent)) {
    doubtful.Add({item.strip, item.first_group * kFilters,
                  min(item.end_group * kFilters, plan.M), exponent, lossy});
  }
}

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
