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

// Word i of a strip whose channel in memory begins at `from`, if it exists.
__device__ __forceinline__ float2 LoadPaddedWord(const StripsPlan& plan,
                                                 const StripItem& item,
                                                 const float* from, bool exists,
                                                 int i) {
  const PaddedWord at(plan, item, i);
  const float* const element = from + at.element;
  return {LoadIfBelow(0, exists && at.first, element),
          LoadIfBelow(0, exists && at.second, element + 1)};
}

// Word i of a strip with one channel, which must have it.
__device__ __forceinline__ float2 LoadGlobalWord(const StripsPlan& plan,
                                                 const StripItem& item,
                                                 WordLoads loads, int i) {
  if (loads == WordLoads::kPairs) {
    return __ldg(reinterpret_cast<const float2*>(item.from) + i);
  }
  if (loads == WordLoads::kPadded) {
    return LoadPaddedWord(plan, item, item.from, true, i);
  }
  return LoadWord(plan, item, item.from, loads, i);
}

// Word i of a strip with any number of channels, or zeros beyond its end. There
// are no branches, because the compiler waits at the end of a branch for what
// was loaded in it.
__device__ __forceinline__ float2 LoadWordOrZeros(const StripsPlan& plan,
                                                  const StripItem& item,
                                                  WordLoads loads, int i) {
  const int c = min(Divide(i, plan.plane_magic), plan.C - 1);
  const float* const plane = item.from + c * plan.area();
  i -= c * plan.plane_words;
  const int words = item.input_rows * plan.pitch;
  if (loads == WordLoads::kPairs) {
    return LoadPairIfBelow(i, words, plane + 2 * i);
  }
  if (loads == WordLoads::kPadded) {
    return LoadPaddedWord(plan, item, plane, i < words, i);
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
  const int words = WordsOf<kOneChannel>(plan, item);
  WithLoads<kPadded>(loads, [&](auto constant) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const int i = first + lane + 32 * j;
      if constexpr (!kOneChannel) {
        to[j] = LoadWordOrZeros(plan, item, constant, i);
      } else if constexpr (kPadded) {
        to[j] = LoadPaddedWord(plan, item, item.from, i < words, i);
      } else {
        to[j] =
            i < words ? LoadGlobalWord(plan, item, constant, i) : float2{0, 0};
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
         i < WordsOf<kOneChannel>(plan, item); i += 32 * kLine) {
      const int c = Divide(i, plan.plane_magic);
      const int element = min(2 * (i - c * plan.plane_words), item.inputs - 1);
      PrefetchToL2(item.from + c * plan.area() + element);
    }
  }
}

// Calls put(i, word), or put(i, word, exists), for every word i that is the
// lane's of the strip's `words`: for those in `ahead`, and for the late ones.
template <bool kOneChannel, bool kPadded, int kLoads, typename Put>
__device__ __forceinline__ void ForWords(const StripsPlan& plan,
                                         const StripItem& item, int words,
                                         WordLoads loads, int lane,
                                         const float2 (&ahead)[kLoads],
                                         const Put& put) {
  if constexpr (kOneChannel) {
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      if (lane + 32 * j < words) put(lane + 32 * j, ahead[j]);
    }
#pragma unroll 4
    for (int i = lane + 32 * kLoads; i < words; i += 32) {
      put(i, LoadGlobalWord(plan, item, loads, i));
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
      LoadWords<false, kPadded>(plan, item, loads, first, lane, late);
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
