// How a warp of tensor_strips brings the inputs of a strip: the first words of
// a lane to registers while the strip before is multiplied, the late ones when
// the slab is written.
//
// A word is two neighbouring inputs of a row. With one channel the words of a
// strip are its rows; with several they are the planes of all channels, each as
// large as that of the largest strip. If zeros stand around the images the
// words of a row are those in memory, and are put amid the slab's zeros. Rows
// of zeros above and below count as rows behind those in memory; the ones
// behind a plane's end go to the next plane's beginning, and the last to the
// first's.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_STRIP_INPUTS_CUH_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_STRIP_INPUTS_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/strips/mma_plan.h"
#include "kernels/convolution/cuda/strips/strips.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// The number of words in a strip.
template <bool kOneChannel, bool kPadded>
__device__ __forceinline__ int WordsOf(const StripsPlan& plan,
                                       const StripItem& item) {
  if constexpr (kPadded) {
    return kOneChannel ? item.input_rows * plan.inset_pitch
                       : plan.C * plan.inset_plane_words;
  }
  return kOneChannel ? item.input_rows * plan.pitch : plan.C * plan.plane_words;
}

// Word i of a channel with `inputs` inputs in memory, which begin at `from`, or
// zeros beyond them. The image has zeros around it.
__device__ __forceinline__ float2 LoadInsetWord(const StripsPlan& plan,
                                                const float* from, int inputs,
                                                WordLoads loads, int i) {
  if (loads == WordLoads::kPairs) {
    return LoadPairIfBelow(2 * i, inputs, from + 2 * i);
  }
  const int row = DivideDoubled(2 * i, plan.inset_pitch_magic);
  // If the width is odd words stand as in the slab.
  const int column = 2 * (i - row * plan.inset_pitch) -
                     (plan.inset.left & plan.inset.width & 1);
  const int begin = row * plan.inset.width;
  const float* const element = from + begin + column;
  return {LoadIfBelow(begin, column < 0 ? begin : inputs, element),
          LoadIfBelow(column + 1, begin < inputs ? plan.inset.width : 0,
                      element + 1)};
}

// Word i of a strip with one channel, which must have it.
__device__ __forceinline__ float2 LoadGlobalWord(const StripsPlan& plan,
                                                 const StripItem& item,
                                                 WordLoads loads, int i) {
  if (loads == WordLoads::kPairs) {
    return __ldg(reinterpret_cast<const float2*>(item.from) + i);
  }
  return LoadWord(plan, item, item.from, loads, i);
}

// Word i of a strip with any number of channels, or zeros beyond its end. There
// are no branches, because the compiler waits at the end of a branch for what
// was loaded in it.
template <bool kPadded>
__device__ __forceinline__ float2 LoadWordOrZeros(const StripsPlan& plan,
                                                  const StripItem& item,
                                                  WordLoads loads, int i) {
  if constexpr (kPadded) {
    const int c = min(DivideDoubled(2 * i, plan.inset_plane_magic), plan.C - 1);
    return LoadInsetWord(plan, item.from + c * plan.area(), item.inputs, loads,
                         i - c * plan.inset_plane_words);
  }
  const int c = min(DivideDoubled(2 * i, plan.plane_magic), plan.C - 1);
  const float* const plane = item.from + c * plan.area();
  i -= c * plan.plane_words;
  const int words = item.input_rows * plan.pitch;
  if (loads == WordLoads::kPairs) {
    return LoadPairIfBelow(i, words, plane + 2 * i);
  }
  const int element = 2 * i - plan.W % 2 * Divide(i, plan.pitch_magic);
  return {LoadIfBelow(i, words, plane + element),
          LoadIfBelow(i < words ? element + 1 : item.inputs, item.inputs,
                      plane + element + 1)};
}

// Loads a lane's words of a strip, which are 32 apart, from word `first` on;
// zeros beyond the strip's end.
template <bool kOneChannel, bool kPadded, int kCount>
__device__ __forceinline__ void LoadWords(const StripsPlan& plan,
                                          const StripItem& item,
                                          WordLoads loads, int first, int lane,
                                          float2 (&to)[kCount]) {
  const int words = WordsOf<kOneChannel, kPadded>(plan, item);
  WithLoads(loads, [&](auto constant) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const int i = first + lane + 32 * j;
      if constexpr (!kOneChannel) {
        to[j] = LoadWordOrZeros<kPadded>(plan, item, constant, i);
      } else if constexpr (!kPadded) {
        to[j] =
            i < words ? LoadGlobalWord(plan, item, constant, i) : float2{0, 0};
      } else if constexpr (constant == WordLoads::kPairs) {
        to[j] = 2 * i < item.inputs ? LoadGlobalWord(plan, item, constant, i)
                                    : float2{0, 0};
      } else {
        to[j] = LoadInsetWord(plan, item.from, item.inputs, constant, i);
      }
    }
  });
}

// Loads the first words of a strip to registers, and with several channels
// prefetches the others to the L2 cache.
template <bool kOneChannel, bool kPadded, int kLoads>
__device__ __forceinline__ void LoadAhead(const StripsPlan& plan,
                                          const StripItem& item,
                                          WordLoads loads, int lane,
                                          float2 (&ahead)[kLoads]) {
  LoadWords<kOneChannel, kPadded>(plan, item, loads, 0, lane, ahead);
  if constexpr (!kOneChannel) {
    if (kPadded && item.inputs == 0) return;
    constexpr int kLine = 16;  // words
    for (int i = 32 * kLoads + lane * kLine;
         i < WordsOf<kOneChannel, kPadded>(plan, item); i += 32 * kLine) {
      const int c = DivideDoubled(
          2 * i, kPadded ? plan.inset_plane_magic : plan.plane_magic);
      const int word =
          i - c * (kPadded ? plan.inset_plane_words : plan.plane_words);
      const int element = min(2 * word, item.inputs - 1);
      PrefetchToL2(item.from + c * plan.area() + element);
    }
  }
}

// Where word first + lane of a strip's `words` goes. Amid zeros it moves on by
// what lies between the rows, and begins anew behind the slab's last row.
template <bool kOneChannel, bool kPadded>
__device__ __forceinline__ SlabWord SlabWordOf(const StripsPlan& plan,
                                               const StripItem& item, int words,
                                               int first, int lane) {
  const int i = first + lane;
  if constexpr (kPadded) {
    const int row = DivideDoubled(2 * i, plan.inset_pitch_magic);
    const int begin = item.above * plan.pitch + plan.inset.left / 2 + lane;
    int at = begin + row * (plan.pitch - plan.inset_pitch) + first;
    const int end =
        kOneChannel ? item.input_rows * plan.pitch : plan.C * plan.plane_words;
    if (at >= end) at -= end;
    return {at, kOneChannel || i < words};
  } else {
    return {i, i < words};
  }
}

// Calls put(word, v, shifted), as SplitStrip wants it, for every word that is
// the lane's of the strip's `words`: for those in `ahead`, and for the late
// ones.
template <bool kOneChannel, bool kPadded, bool kShifted, int kLoads,
          typename Put>
__device__ __forceinline__ void ForWordsOf(const StripsPlan& plan,
                                           const StripItem& item, int words,
                                           WordLoads loads, int lane,
                                           const float2 (&ahead)[kLoads],
                                           const Put& put) {
  constexpr std::bool_constant<kShifted> shifted;
  const auto put_at = [&](int first, float2 v) {
    put(SlabWordOf<kOneChannel, kPadded>(plan, item, words, first, lane), v,
        shifted);
  };
  if constexpr (kOneChannel && !kPadded) {
    // Not by put_at, with which these kernels take up to 1.4 % longer: they get
    // other registers.
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      const int i = lane + 32 * j;
      if (i < words) put(SlabWord{i}, ahead[j], shifted);
    }
#pragma unroll 4
    for (int i = lane + 32 * kLoads; i < words; i += 32) {
      put(SlabWord{i}, LoadGlobalWord(plan, item, loads, i), shifted);
    }
  } else if constexpr (kOneChannel) {
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      if (lane + 32 * j < words) put_at(32 * j, ahead[j]);
    }
#pragma unroll 4
    for (int i = lane + 32 * kLoads; i < words; i += 32) {
      put_at(i - lane, LoadInsetWord(plan, item.from, item.inputs, loads, i));
    }
  } else {
    // Late words are under way while those in registers are split.
    constexpr int kLate = 20;  // of a lane, at a time
#pragma unroll 1
    for (int first = 32 * kLoads;; first += 32 * kLate) {
      float2 late[kLate];
      LoadWords<false, kPadded>(plan, item, loads, first, lane, late);
      if (first == 32 * kLoads) {
#pragma unroll
        for (int j = 0; j < kLoads; ++j) {
          if (32 * j < words) put_at(32 * j, ahead[j]);
        }
      }
#pragma unroll
      for (int j = 0; j < kLate; ++j) {
        if (first + 32 * j < words) put_at(first + 32 * j, late[j]);
      }
      if (first + 32 * kLate >= words) break;
    }
  }
}
template <bool kOneChannel, bool kPadded, int kLoads, typename Put>
__device__ __forceinline__ void ForWords(const StripsPlan& plan,
                                         const StripItem& item, int words,
                                         WordLoads loads, int lane,
                                         const float2 (&ahead)[kLoads],
                                         const Put& put) {
  if (kPadded && plan.shifted()) {
    ForWordsOf<kOneChannel, kPadded, kPadded>(plan, item, words, loads, lane,
                                              ahead, put);
  } else {
    ForWordsOf<kOneChannel, kPadded, false>(plan, item, words, loads, lane,
                                            ahead, put);
  }
}

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_STRIP_INPUTS_CUH_
