// What the kernels of a network's front have in common: a block's strips, whose
// pixels are enlarged in shared memory; front.cu tells the idea.
#ifndef KERNELS_COMPILED_CUDA_FRONT_STRIPS_CUH_
#define KERNELS_COMPILED_CUDA_FRONT_STRIPS_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/compiled/cuda/front_plan.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/tanh.cuh"
#include "kernels/layers/cuda/enlarge.cuh"

namespace convlab::cuda {

// What a filter's sums are multiplied by, and what is added.
struct FrontScale {
  float factor, bias;
};

// Those of packed filters, behind the vectors (front_plan.h).
inline FrontScale* FrontScalesOf(const FrontShape& shape, void* packed) {
  return reinterpret_cast<FrontScale*>(static_cast<uint4*>(packed) +
                                       shape.vectors());
}

// Two positions, one below the other: where the upper one's window begins in
// the pixels, and its place in the strip's result, both in words.
struct alignas(kFrontRunBytes) FrontRun {
  uint16_t window, place;
};
static_assert(sizeof(FrontRun) == kFrontRunBytes);

// kWarpgroups: for products of warpgroups, whose strips are whole images.
template <bool kWarpgroups>
class FrontStrips {
 protected:
  static constexpr int kWords = FrontPitch(kWarpgroups) / 2;

  // scales: those of the block's filters will be there.
  __device__ FrontStrips(char* shared, FrontScale* scales,
                         const uint8_t* images, float* out,
                         const FrontLaunch& launch)
      : launch_(launch),
        scales_(scales),
        taps_(reinterpret_cast<Tap*>(shared + launch.taps_at())),
        runs_(reinterpret_cast<FrontRun*>(shared + launch.runs_at())),
        source_(reinterpret_cast<float*>(shared + launch.source_at())),
        pixels_(reinterpret_cast<uint32_t*>(shared + launch.pixels_at())),
        enlarging_(launch.shape.problem.size, launch.shape.problem.enlarged),
        images_(images),
        out_(out) {}

  // Calls prepare() and, behind a barrier, convolve(image, first row) for the
  // block's strips, one after another, whose pixels are in shared memory by
  // then.
  template <typename Prepare, typename Convolve>
  __device__ __forceinline__ void ForEach(const FrontScale* scales,
                                          const Prepare& prepare,
                                          const Convolve& convolve) {
    const int64_t strips = launch_.images * launch_.strips;
    int64_t i = blockIdx.x;
    // An image's bytes come while something else is done.
    Strip next = StripAt(i, [&](int row) { return enlarging_.TapOf(row); });
    Words words = Fetch(next);
    Begin(scales);
    __syncthreads();
    while (i < strips) {
      const Strip strip = next;
      // The barriers part the strips: who is in one first writes only what
      // nobody reads after them.
      StoreSource(strip, words);
      __syncthreads();
      if (enlarging_.at_once()) {
        Mix<true>(strip);
      } else {
        Mix<false>(strip);
      }
      // For the factors, which come while the first strip is enlarged.
      WaitForCopies<0>();
      prepare();
      __syncthreads();
      i += gridDim.x;
      if (i < strips) {
        next = StripAt(i, [&](int row) { return taps_[row]; });
        words = Fetch(next);
      }
      convolve(strip.image, strip.first);
    }
  }

  // The pixels under two runs, as a lane holds them for products:
  // [pair of rows][run + 2 row of the pair].
  template <int kPairs>
  __device__ __forceinline__ void LoadWindows(
      const FrontRun (&runs)[2], uint32_t (&pixels)[kPairs][4]) const {
    const uint32_t* const own = pixels_ + threadIdx.x % 4;
#pragma unroll
    for (int s = 0; s < kPairs; ++s) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        pixels[s][i] = own[runs[i % 2].window + (2 * s + i / 2) * kWords];
      }
    }
  }

  // One activated result.
  template <Activation kActivation>
  static __device__ __forceinline__ float Finished(float most,
                                                   FrontScale scale) {
    const float value = most * scale.factor + scale.bias;
    return kActivation == Activation::kTanh ? Tanh(value)
                                            : Apply<kActivation>(value);
  }

  static __device__ int threads() { return blockDim.x; }
  __device__ const FrontShape& shape() const { return launch_.shape; }
  __device__ int size() const { return shape().problem.size; }
  __device__ int enlarged() const { return shape().problem.enlarged; }

 private:
  using Tap = SmallInterpolation::Tap;

  // What stays for all strips: taps, runs and factors.
  __device__ void Begin(const FrontScale* scales) {
    const int own = threadIdx.x;
    const int factors = 2 * shape().tiles * launch_.wide;
    for (int i = own; i < factors; i += threads()) {
      StartCopy<sizeof(FrontScale)>(
          scales_ + i, scales + static_cast<int>(blockIdx.y) * factors + i,
          true);
    }
    CommitCopies();
    for (int i = own; i < enlarged(); i += threads()) {
      taps_[i] = enlarging_.TapOf(i);
    }
    // Where rows are odd, the last runs begin a row higher; those beyond the
    // last repeat it. What is computed twice is stored twice.
    for (int i = own; i < launch_.padded_runs(); i += threads()) {
      const int run = min(i, launch_.runs() - 1), pair = run / shape().pooled;
      const int x = run - pair * shape().pooled;
      const int row = min(2 * pair, launch_.rows - 2);
      runs_[i] = {static_cast<uint16_t>(row * 2 * kWords + x),
                  static_cast<uint16_t>(row * shape().pooled + x)};
    }
    // The source's border stays zeros.
    const int floats = launch_.source_rows() * (size() + 2);
    for (int i = own; i < floats; i += threads()) source_[i] = 0;
  }

  // Some rows of an image's result, and the rows of the source under them,
  // counted with its border.
  struct Strip {
    int64_t image;
    int first;  // row of the result
    int source, source_rows;
  };
  // tap(i) is that of a row of pixels.
  template <typename TapAt>
  __device__ __forceinline__ Strip StripAt(int64_t i, const TapAt& tap) const {
    Strip strip = {i, 0, 0, 0};
    // Divisions of 64 bits would be a tenth of a whole image's instructions.
    if (!kWarpgroups && launch_.strips > 1) {
      strip.image = i / launch_.strips;
      // The last strip has as many rows as the others, some of them again.
      strip.first = min(static_cast<int>(i % launch_.strips) * launch_.rows,
                        shape().pooled - launch_.rows);
    }
    const int first = 2 * strip.first;
    const int last = min(first + launch_.pixel_rows(), enlarged()) - 1;
    strip.source = tap(first).first;
    // Two rows are mixed.
    strip.source_rows = tap(last).first + 2 - strip.source;
    return strip;
  }

  // A thread goes down a word's column, from one row of the source to the next:
  // it mixes their columns once for all rows between the two, of which the
  // weight of the lower one grows by the same amount from row to row. What is
  // beyond the image repeats its last row and column: only weights of 0 meet
  // it.
  template <bool kAtOnce>
  __device__ __forceinline__ void Mix(const Strip& strip) {
    const int pairs = shape().columns / 2, last = enlarged() - 1;
    const int part = Divide(threadIdx.x, shape().pairs_magic);
    const int x = threadIdx.x - part * pairs;
    const int begin = part * launch_.part_rows;
    const int end = min(begin + launch_.part_rows, launch_.pixel_rows());
    if (begin >= end) return;
    const int first = 2 * strip.first, pitch = size() + 2;
    const Tap tap = taps_[min(first + begin, last)];
    const float* const row = source_ + (tap.first - strip.source) * pitch;
    const Tap columns[2] = {taps_[min(2 * x, last)],
                            taps_[min(2 * x + 1, last)]};
    const float* from[2] = {row + columns[0].first, row + columns[1].first};
    const auto across = [&] {
      const float2 mixed = {enlarging_.Mix(columns[0], from[0]),
                            enlarging_.Mix(columns[1], from[1])};
      from[0] += pitch;
      from[1] += pitch;
      return mixed;
    };
    uint32_t* to = pixels_ + begin * kWords + x;
    uint32_t* const after = to + (end - begin) * kWords;
    // One row at least, if only to be repeated.
    uint32_t* const inside =
        to + max(min(end, last + 1 - first) - begin, 1) * kWords;
    float weight = tap.weight1;
    uint32_t word = 0;
    for (float2 bottom = across(); to < inside; weight -= enlarging_.whole()) {
      const float2 top = bottom;
      bottom = across();
      const SmallInterpolation::Rows rows = enlarging_.RowsOf(top, bottom);
#pragma unroll 4
      for (; weight < enlarging_.whole() && to < inside; to += kWords) {
        word = enlarging_.DownPair<kAtOnce>(weight, rows);
        *to = word;
        weight += enlarging_.step();
      }
    }
    for (; to < after; to += kWords) *to = word;
  }

  // Images may be in the host's memory, so that every wait counts: where all
  // rows consist of words, these are loaded, a thread's first ones ahead.
  struct Words {
    static constexpr int kCount = 2;
    uint32_t own[kCount];
  };
  __device__ __forceinline__ bool has_words() const {
    return shape().words_magic != 0 &&
           reinterpret_cast<uintptr_t>(images_) % 4 == 0;
  }
  __device__ __forceinline__ Words Fetch(const Strip& strip) const {
    Words words = {};
    if (!has_words()) return words;
#pragma unroll
    for (int j = 0; j < Words::kCount; ++j) {
      const int i = threadIdx.x + j * threads();
      if (i < strip.source_rows * size() / 4) words.own[j] = WordAt(strip, i);
    }
    return words;
  }
  // 0 where the border is.
  __device__ __forceinline__ uint32_t WordAt(const Strip& strip, int i) const {
    const int row_words = size() / 4;
    const int at = i + (strip.source - 1) * row_words;
    if (at < 0 || at >= size() * row_words) return 0;
    return reinterpret_cast<const uint32_t*>(images_ +
                                             strip.image * size() * size())[at];
  }

  __device__ __forceinline__ void StoreSource(const Strip& strip,
                                              const Words& words) {
    if (has_words()) {
      const auto store = [&](int i, uint32_t word) {
        // Two floats of a row are its border.
        const int row = Divide(i, shape().words_magic);
        float* const to = source_ + 4 * i + 2 * row + 1;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          to[j] = static_cast<float>(word >> (8 * j) & 0xff);
        }
      };
      const int end = strip.source_rows * size() / 4;
#pragma unroll
      for (int j = 0; j < Words::kCount; ++j) {
        const int i = threadIdx.x + j * threads();
        if (i < end) store(i, words.own[j]);
      }
      for (int i = threadIdx.x + Words::kCount * threads(); i < end;
           i += threads()) {
        store(i, WordAt(strip, i));
      }
      return;
    }
    const int pitch = size() + 2;
    const uint8_t* const from = images_ + strip.image * size() * size();
#pragma unroll 4
    for (int i = threadIdx.x; i < strip.source_rows * pitch; i += threads()) {
      const int row = Divide(i, shape().source_magic);
      const int y = strip.source + row - 1, x = i - row * pitch - 1;
      const bool inside = y >= 0 && y < size() && x >= 0 && x < size();
      source_[i] = inside ? static_cast<float>(from[y * size() + x]) : 0;
    }
  }

 protected:
  const FrontLaunch& launch_;
  FrontScale* const scales_;
  Tap* const taps_;
  FrontRun* const runs_;
  float* const source_;     // rows of the image with a border of zeros
  uint32_t* const pixels_;  // [row][column], words of two halves
  const SmallInterpolation enlarging_;
  const uint8_t* const images_;
  float* const out_;
};

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_FRONT_STRIPS_CUH_
