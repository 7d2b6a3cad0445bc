// How a warp of tensor_strips brings the inputs of a strip: the first words of
// a lane to registers while the strip before is multiplied, the late ones when
// the slab is written.
//
// A word is two neighbouring inputs of a row. With one channel the words of a
// strip are its rows; with several they are the planes of all channels, each as
// large as that of an image's first strip.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_STRIP_INPUTS_CUH_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_STRIP_INPUTS_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/strips/mma_plan.h"
#include "kernels/convolution/cuda/strips/strips.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// The number of words in a strip.
template <bool kOneChannel>
__device__ __forceinline__ int WordsOf(const StripsPlan& plan,
                                       const StripItem& item) {
  return kOneChannel ? item.input_rows * plan.pitch : plan.C * plan.plane_words;
}

// Word i of a strip with one channel, which must have it. With `pairs` a word
// is one load.
__device__ __forceinline__ float2 LoadGlobalWord(const StripsPlan& plan,
                                                 const StripItem& item,
                                                 bool pairs, int i) {
  return pairs ? __ldg(reinterpret_cast<const float2*>(item.from) + i)
               : LoadWord(plan, item.from, item.inputs, false, i);
}

// Word i of a strip with any number of channels, or zeros beyond its end. There
// are no branches, because the compiler waits at the end of a branch for what
// was loaded in it.
__device__ __forceinline__ float2 LoadWordOrZeros(const StripsPlan& plan,
                                                  const StripItem& item,
                                                  bool pairs, int i) {
  const int c = min(Divide(i, plan.plane_magic), plan.C - 1);
  const float* const plane = item.from + c * (plan.H * plan.W);
  i -= c * plan.plane_words;
  const int words = item.input_rows * plan.pitch;
  if (pairs) return LoadPairIfBelow(i, words, plane + 2 * i);
  const int element = 2 * i - plan.W % 2 * Divide(i, plan.pitch_magic);
  return {LoadIfBelow(i, words, plane + element),
          LoadIfBelow(i < words ? element + 1 : item.inputs, item.inputs,
                      plane + element + 1)};
}

// Loads a lane's words of a strip, which are 32 apart, from word `first` on;
// zeros beyond the strip's end.
template <bool kOneChannel, int kCount>
__device__ __forceinline__ void LoadWords(const StripsPlan& plan,
                                          const StripItem& item, bool pairs,
                                          int first, int lane,
                                          float2 (&to)[kCount]) {
  const int words = WordsOf<kOneChannel>(plan, item);
  const auto load = [&](bool all_pairs, int i) -> float2 {
    if constexpr (!kOneChannel) {
      return LoadWordOrZeros(plan, item, all_pairs, i);
    }
    return i < words ? LoadGlobalWord(plan, item, all_pairs, i) : float2{0, 0};
  };
  if (pairs) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) to[j] = load(true, first + lane + 32 * j);
  } else {
#pragma unroll
    for (int j = 0; j < kCount; ++j) to[j] = load(false, first + lane + 32 * j);
  }
}

// Loads the first words of a strip to registers, and with several channels
// prefetches the others to the L2 cache.
template <bool kOneChannel, int kLoads>
__device__ __forceinline__ void LoadAhead(const StripsPlan& plan,
                                          const StripItem& item, bool pairs,
                                          int lane, float2 (&ahead)[kLoads]) {
  LoadWords<kOneChannel>(plan, item, pairs, 0, lane, ahead);
  if constexpr (!kOneChannel) {
    constexpr int kLine = 16;  // words
    for (int i = 32 * kLoads + lane * kLine;
         i < WordsOf<kOneChannel>(plan, item); i += 32 * kLine) {
      const int c = Divide(i, plan.plane_magic);
      const int element = min(2 * (i - c * plan.plane_words), item.inputs - 1);
      PrefetchToL2(item.from + c * (plan.H * plan.W) + element);
    }
  }
}

// Calls put(i, word), or put(i, word, exists), for every word i that is the
// lane's of the strip's `words`: for those in `ahead`, and for the late ones.
template <bool kOneChannel, int kLoads, typename Put>
__device__ __forceinline__ void ForWords(const StripsPlan& plan,
                                         const StripItem& item, int words,
                                         bool pairs, int lane,
                                         const float2 (&ahead)[kLoads],
                                         const Put& put) {
  if constexpr (kOneChannel) {
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      if (lane + 32 * j < words) put(lane + 32 * j, ahead[j]);
    }
#pragma unroll 4
    for (int i = lane + 32 * kLoads; i < words; i += 32) {
      put(i, LoadGlobalWord(plan, item, pairs, i));
    }
  } else {
    // Late words are under way while those in registers are split.
    constexpr int kLate = 20;  // of a lane, at a time
    const auto put_at = [&](int first, float2 v) {
      if (first < words) put(first + lane, v, first + lane < words);
    };
#pragma unroll 1
    for (int first = 32 * kLoads;; first += 32 * kLate) {
      float2 late[kLate];
      LoadWords<false>(plan, item, pairs, first, lane, late);
      if (first == 32 * kLoads) {
#pragma unroll
        for (int j = 0; j < kLoads; ++j) put_at(32 * j, ahead[j]);
      }
#pragma unroll
      for (int j = 0; j < kLate; ++j) put_at(first + 32 * j, late[j]);
      if (first + 32 * kLate >= words) break;
    }
  }
}

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_STRIP_INPUTS_CUH_
