// The converters of WgmmaKernel: groups of warps, each of which scales a slab
// by a power of two, splits its values into halves, and leaves them in a
// buffer of shared memory with the channels of a pixel side by side. The groups
// take the block's slabs in turn. The zeros of a padded image are not loaded:
// those beside the rows stay in the buffers from the kernel's beginning on.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_CONVERTER_CUH_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_CONVERTER_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/wgmma/block.cuh"
#include "kernels/convolution/cuda/wgmma/pixels.cuh"
#include "kernels/convolution/cuda/wgmma/plan.h"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

// Splits kValues scaled values of a pixel and stores their halves at `to`, the
// low ones `low_offset` bytes later. One part has no low halves.
template <int kParts, int kValues>
__device__ __forceinline__ void SplitPixel(const float* v, float scale,
                                           uint32_t to, uint32_t low_offset) {
  uint32_t h[kValues / 2], l[kValues / 2];
#pragma unroll
  for (int j = 0; j < kValues / 2; ++j) {
    const float a = v[2 * j];
    const float b = v[2 * j + 1];
    Split(a * scale, b * scale, h[j], l[j]);
  }
  if constexpr (kValues == 4) {
    StoreShared2(to, __uint_as_float(h[0]), __uint_as_float(h[1]));
    if constexpr (kParts == 2) {
      StoreShared2(to + low_offset, __uint_as_float(l[0]),
                   __uint_as_float(l[1]));
    }
  } else {
    StoreShared(to, __uint_as_float(h[0]));
    if constexpr (kParts == 2) {
      StoreShared(to + low_offset, __uint_as_float(l[0]));
    }
  }
}

// Whether some of a thread's values are lossy: those of `channels` channels and
// of pixels 0, kThreads and so on below `pixels`. They are loaded again, by few
// instructions that ordinary data does not reach.
template <int kThreads, typename Source>
__device__ __forceinline__ bool SeesLossy(Source source, int area, int channels,
                                          int pixels, float scale) {
  bool lossy = false;
#pragma unroll 1
  for (int c = 0; c < channels; ++c, source.Advance(area)) {
#pragma unroll 1
    for (int i = 0; i < pixels; i += kThreads) {
      const float value = source.Load(i);
      lossy |= IsLossy(value, value * scale);
    }
  }
  return lossy;
}

// The zeros that stand between the rows of a slab's halves, if it is kPadded.
template <bool kPadded>
struct RowGaps {
  const WgmmaPlan& plan;

  // Their bytes before a pixel of the image.
  __device__ __forceinline__ uint32_t Before(int pixel) const {
    return kPadded ? Divide(pixel, plan.columns_magic) * plan.gap_bytes : 0;
  }
};

// Converts kUnits units of kValues channels of `pixels` pixels, of which
// `channels` exist, from `source` to `target`; `area` is the distance of
// channels in floats, and `first` the first pixel of the slab's. A thread
// starts sixteen loads at a time. Beyond the last channel it loads that channel
// again: the filters have zeros there. `seen` grows by the values, doubled bits
// of magnitudes before scaling, of which those below least_kept may be lossy.
template <int kParts, int kValues, int kUnits, int kThreads, typename Source,
          typename Gaps>
__device__ __forceinline__ void ConvertChannels(
    Source source, int area, int channels, int first, int pixels,
    int pixel_bytes, const Gaps& gaps, float scale, uint32_t least_kept,
    int tid, uint32_t target, uint32_t low_offset, Seen& seen) {
  constexpr int kChannels = kUnits * kValues;
  constexpr int kAtOnce = 16 / kChannels;
  source.Advance(tid);
  target += tid * pixel_bytes;
#pragma unroll 1
  for (int left = pixels - tid; left > 0; left -= kThreads * kAtOnce) {
    float v[kAtOnce][kChannels];
    Source from = source;
    Unroll<kChannels>([&](auto c_index) {
      constexpr int c = decltype(c_index)::value;
      if (c > 0 && c < channels) from.Advance(area);
      Unroll<kAtOnce>([&](auto i_index) {
        constexpr int i = decltype(i_index)::value;
        v[i][c] = from.template LoadIfBelow<kThreads * i>(kThreads * i, left);
      });
    });
    Extent extent;
    extent.most = seen.most;
#pragma unroll
    for (const auto& pixel : v) {
#pragma unroll
      for (const float value : pixel) extent.Add(value);
    }
    seen.most = extent.most;
    if (kParts == 2 && extent.least < least_kept) {
      seen.lossy |= SeesLossy<kThreads>(source, area, min(channels, kChannels),
                                        min(left, kThreads * kAtOnce), scale);
    }
    source.Advance(kThreads * kAtOnce);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i, target += kThreads * pixel_bytes) {
      if (kThreads * i >= left) break;
      const uint32_t to =
          target + gaps.Before(first + pixels - left + kThreads * i);
#pragma unroll
      for (int unit = 0; unit < kUnits; ++unit) {
        if (unit > 0 && unit * kValues >= channels) break;
        SplitPixel<kParts, kValues>(&v[i][unit * kValues], scale,
                                    to + unit * kValues * 2, low_offset);
      }
    }
  }
}

// One thread of a group of converters.
template <int kShape, bool kPadded>
class Converter {
 public:
  // group_seen: for a slab's values, three in shared memory, as they are at
  // first.
  __device__ __forceinline__ Converter(const Block<kShape>& block, int group,
                                       Seen* group_seen)
      : block_(block),
        plan_(block.plan),
        group_(group),
        tid_(threadIdx.x - 32 * C::kMultiplierWarps -
             group * C::kConverterThreads),
        group_seen_(group_seen),
        first_slab_(blockIdx.x + gridDim.x * group),
        slab_step_(gridDim.x * C::kConverterGroups),
        area_(kPadded ? block.plan.inset.height * block.plan.inset.width
                      : block.plan.H * block.plan.W),
        ring_(block.plan.slab_buffers, block.slab_barriers),
        raw_ring_(block.plan.raw_buffers, block.plan.raw_buffers) {}

  __device__ __forceinline__ void Run() {
    if (plan_.follows_inputs) WaitForKernelBefore();
    for (int i = group_; i < plan_.raw_buffers; i += C::kConverterGroups) {
      BringImage(blockIdx.x + gridDim.x * i, i);
    }
    ring_.Advance(group_), raw_ring_.Advance(group_);
    for (int index = first_slab_; index < block_.slab_count;
         index += slab_step_, ring_.Advance(C::kConverterGroups),
             raw_ring_.Advance(C::kConverterGroups)) {
      const Slab slab = block_.SlabAt(index);
      const Slab::Inputs inputs = slab.InputsOf<kShape, kPadded>(plan_);
      if (plan_.raw_words > 0) {
        WaitFor(block_.brought + 8 * raw_ring_.barrier, raw_ring_.parity);
      } else if (index + slab_step_ < block_.slab_count) {
        Prefetch(block_.SlabAt(index + slab_step_));
      }
      WaitFor(block_.empty + 8 * ring_.free_barrier(), ring_.free_parity());
      if (kPadded && plan_.slabs > 1) ClearRows(slab, inputs);
      const SlabScale scale = ScaleAndSplit(slab, inputs);
      if (scale.exponent == kNotScalable) ClearBuffer();
      if (tid_ == 0) block_.slab_scales[ring_.buffer] = scale;
      Arrive(block_.full + 8 * ring_.barrier);
      if (plan_.raw_words > 0) {
        // The whole group has read this image, or SyncGroup would not have let
        // this thread pass.
        BringImage(index + gridDim.x * plan_.raw_buffers, raw_ring_.buffer);
      }
    }
  }

 private:
  using C = WgmmaConstants<kShape>;

  // The pixels of each channel that a slab needs, and the first of them.
  __device__ __forceinline__ int PixelsOf(const Slab::Inputs& inputs) const {
    return inputs.rows * (kPadded ? plan_.inset.width : plan_.W);
  }
  __device__ __forceinline__ const float* InputOf(
      const Slab& slab, const Slab::Inputs& inputs) const {
    const int height = kPadded ? plan_.inset.height : plan_.H;
    const int width = kPadded ? plan_.inset.width : plan_.W;
    return block_.x +
           (slab.image * plan_.C * height + inputs.first_row) * width;
  }

  // Has the copy engine bring image `index` of the batch, if there is one.
  __device__ __forceinline__ void BringImage(int index, int buffer) const {
    if (tid_ != 0 || index >= block_.slab_count) return;
    FenceAsyncProxy();
    StartLoad(SharedAddress(block_.raws + buffer * plan_.raw_words),
              block_.x + int64_t{index} * plan_.C * area_, plan_.C * area_ * 4,
              block_.brought + 8 * buffer);
  }

  // Has the pixels of a slab brought to the L2 cache.
  __device__ __forceinline__ void Prefetch(const Slab& slab) const {
    const Slab::Inputs inputs = slab.InputsOf<kShape, kPadded>(plan_);
    const float* const p = InputOf(slab, inputs);
    const int pixels = PixelsOf(inputs);
    constexpr int kLine = 32;  // floats
    for (int c = 0; c < plan_.C; ++c) {
      for (int i = tid_ * kLine; i < pixels;
           i += C::kConverterThreads * kLine) {
        PrefetchToL2(p + int64_t{c} * area_ + i);
      }
    }
  }

  // Leaves zeros in the buffer's rows above and below the image, where another
  // slab may have had inputs.
  __device__ __forceinline__ void ClearRows(const Slab& slab,
                                            const Slab::Inputs& inputs) const {
    const int all = (slab.rows + C::kKernelSize - 1) * plan_.pitch;
    const int above = min(inputs.above * plan_.pitch, all);
    const int below = (inputs.above + inputs.rows) * plan_.pitch;
#pragma unroll 1
    for (int part = 0; part < C::kParts; ++part) {
      uint32_t* const words =
          block_.SlabBuffer(ring_.buffer) + part * plan_.slab_words;
#pragma unroll 1
      for (int i = tid_; i < above; i += C::kConverterThreads) words[i] = 0;
#pragma unroll 1
      for (int i = below + tid_; i < all; i += C::kConverterThreads) {
        words[i] = 0;
      }
    }
  }

  // Converts a slab by the exponent of the slab before, and again if its values
  // want another one. Halves cannot stand for infinities and NaN.
  __device__ __forceinline__ SlabScale
  ScaleAndSplit(const Slab& slab, const Slab::Inputs& inputs) {
    Seen seen;
    for (;; turn_ = turn_ == 2 ? 0 : turn_ + 1) {
      seen = OfGroup(ConvertSlab(slab, inputs));
      if (seen.most == 0 || !IsFinite(seen.most / 2)) break;
      const int right = InputExponent(seen.most / 2);
      if (right == exponent_) break;
      exponent_ = right;
    }
    turn_ = turn_ == 2 ? 0 : turn_ + 1;
    return {IsFinite(seen.most / 2) ? exponent_ : kNotScalable,
            static_cast<int>(seen.lossy)};
  }

  // Converts this thread's part of a slab; returns what it saw.
  __device__ __forceinline__ Seen
  ConvertSlab(const Slab& slab, const Slab::Inputs& inputs) const {
    if (plan_.raw_words > 0) {
      const SharedPixels image = {
          SharedAddress(block_.raws + raw_ring_.buffer * plan_.raw_words)};
      return ConvertFrom(image, inputs);
    }
    const GlobalPixels rows = {InputOf(slab, inputs)};
    return ConvertFrom(rows, inputs);
  }
  template <typename Source>
  __device__ __forceinline__ Seen
  ConvertFrom(const Source& source, const Slab::Inputs& inputs) const {
    constexpr int kThreads = C::kConverterThreads;
    const int pixels = PixelsOf(inputs);
    uint32_t target = SharedAddress(block_.SlabBuffer(ring_.buffer));
    if constexpr (kPadded) {
      target += 4 * inputs.above * plan_.pitch +
                2 * plan_.inset.left * plan_.pixel_halves;
    }
    const RowGaps<kPadded> gaps = {plan_};
    Seen seen;
    if constexpr (C::kByPixel) {
      const int first =
          WgmmaPixelsByUnit(plan_.C, pixels, C::kValues, kThreads);
      ConvertPixels<1>(source, 0, first, gaps, target, seen);
      ConvertPixels<16 / C::kValues>(source, first, pixels - first, gaps,
                                     target, seen);
    } else {
      constexpr int kManyUnits = WgmmaManyUnits(C::kValues);
      if (WgmmaRounds(plan_.C, pixels, C::kValues, kManyUnits, kThreads) <
          WgmmaRounds(plan_.C, pixels, C::kValues, 1, kThreads)) {
        ConvertPixels<kManyUnits>(source, 0, pixels, gaps, target, seen);
      } else {
        ConvertPixels<1>(source, 0, pixels, gaps, target, seen);
      }
    }
    return seen;
  }
  // Converts the thread's part of `count` pixels from `first` on, kUnits units
  // of channels at a time. The slab's first pixel goes to `target`.
  template <int kUnits, typename Source, typename Gaps>
  __device__ __forceinline__ void ConvertPixels(Source source, int first,
                                                int count, const Gaps& gaps,
                                                uint32_t target,
                                                Seen& seen) const {
    if (C::kByPixel && count == 0) return;
    constexpr int kChannels = kUnits * C::kValues;
    const int pixel_bytes = plan_.pixel_halves * 2;
    target += first * pixel_bytes;
    const float scale = PowerOfTwo(exponent_);
    const uint32_t least_kept = Extent::LeastKeptOf(exponent_);
    source.Advance(first);
#pragma unroll 1
    for (int c = 0; c < plan_.C; c += kChannels) {
      ConvertChannels<C::kParts, C::kValues, kUnits, C::kConverterThreads>(
          source, area_, plan_.C - c, first, count, pixel_bytes, gaps, scale,
          least_kept, tid_, target + 2 * c, plan_.slab_words * 4, seen);
      source.Advance(int64_t{kChannels} * area_);
    }
  }

  // What the group's threads have seen; synchronizes them. Those of group_seen_
  // are used in turn, and each is empty when its turn comes.
  __device__ __forceinline__ Seen OfGroup(const Seen& seen) const {
    const Seen of_warp = seen.OfWarp();
    if (block_.lane == 0) {
      atomicMax(&group_seen_[turn_].most, of_warp.most);
      if (of_warp.lossy != 0) atomicOr(&group_seen_[turn_].lossy, 1);
    }
    SyncGroup(2 + group_, C::kConverterThreads);
    const volatile Seen* const of_all = &group_seen_[turn_];
    Seen all;
    all.most = of_all->most;
    // One part's losses are within its class.
    if (C::kParts > 1) all.lossy = of_all->lossy;
    // All have read that of the turn before.
    if (tid_ == 0) group_seen_[turn_ == 0 ? 2 : turn_ - 1] = Seen();
    return all;
  }

  // Leaves no infinities or NaN in the buffer: the next slab may not reach all
  // of it, and a product of them with zero is NaN.
  __device__ __forceinline__ void ClearBuffer() const {
    uint32_t* const words = block_.SlabBuffer(ring_.buffer);
    for (int i = tid_; i < C::kParts * plan_.slab_words;
         i += C::kConverterThreads) {
      words[i] = 0;
    }
  }

  const Block<kShape>& block_;
  const WgmmaPlan& plan_;
  const int group_, tid_;
  Seen* const group_seen_;
  const int first_slab_, slab_step_;
  const int area_;  // of a channel
  WgmmaRing ring_, raw_ring_;
  int exponent_ = kUsualExponent;  // of the slab before
  int turn_ = 0;                   // of group_seen_
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_CONVERTER_CUH_
