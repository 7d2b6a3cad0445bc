// The kernel of a network's front for images of floats by products of
// warpgroups; float_front.cu tells the idea. For compute capability 9.0; in
// code for any other GPU its body is empty.
#ifndef KERNELS_COMPILED_CUDA_FLOAT_FRONT_WARPGROUPS_CUH_
#define KERNELS_COMPILED_CUDA_FLOAT_FRONT_WARPGROUPS_CUH_

#include <cstdint>

#include "kernels/compiled/cuda/float_front.cuh"
#include "kernels/compiled/cuda/float_front_shared.h"
#include "kernels/compiled/cuda/front_strips.cuh"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/scaling.h"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/split.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

// kImage: the height and width of images, by which addresses and divisions are
// constants; 0: those of `sizes`.
template <int kSize, Activation kActivation, int kImage>
class FloatFrontGroups {
 public:
  // `barriers` and `factors`: one for each image.
  __device__ FloatFrontGroups(char* shared, uint64_t* barriers, float* factors,
                              const FloatFrontSizes& sizes,
                              const FloatFrontParameters<kSize>& parameters,
                              const float* in, float* out)
      : sizes_(sizes),
        parameters_(parameters),
        shared_(shared),
        barriers_(SharedAddress(barriers)),
        factors_(factors),
        count_(static_cast<int>(
            min(int64_t{sizes.block_images},
                sizes.images - int64_t{blockIdx.x} * sizes.block_images))),
        in_(in + int64_t{blockIdx.x} * sizes.block_images * pixels()),
        out_(out + int64_t{blockIdx.x} * sizes.block_images * sizes.filters *
                       area()) {}

  __device__ void Run(const uint4* filters, const FrontScale* scales) {
    // A warp loads its own images, and waits for them alone.
    constexpr int kWarps = kFloatGroupThreads / 32;
    const int warp = threadIdx.x / 32;
    if (lane() == 0) {
      for (int i = warp; i < count_; i += kWarps) {
        InitBarrier(barriers_ + 8 * i, 1);
      }
      FenceAsyncProxy();
      for (int i = warp; i < count_; i += kWarps) {
        StartLoad(SharedAddress(image(i)), in_ + i * pixels(), 4 * pixels(),
                  barriers_ + 8 * i);
      }
    }
    StoreFilters(filters);
    const FrontScale own[2] = {scales[FilterOf(0)], scales[FilterOf(1)]};
    __syncwarp();
    bool all_kept = true;
    for (int i = warp; i < count_; i += kWarps) {
      WaitFor(barriers_ + 8 * i, 0);
      all_kept = Split(i) && all_kept;
    }
    all_kept = __syncthreads_and(all_kept);
    Multiply(own);
    if (all_kept) return;
    for (int i = 0; i < count_; ++i) {
      if (factors_[i] == 0) ComputeImage(i);
    }
  }

 private:
  using Shared = FloatFrontShared;
  static constexpr int kSteps = Shared::Steps(kSize);
  static constexpr int kSums = 4 * Shared::kTiles;

  static __device__ int lane() { return threadIdx.x % 32; }
  static constexpr int kPooled = (kImage - kSize + 1) / 2;
  __device__ int size() const { return kImage > 0 ? kImage : sizes_.size; }
  __device__ int pooled() const { return kImage > 0 ? kPooled : sizes_.pooled; }
  __device__ int pixels() const { return size() * size(); }
  __device__ int area() const { return pooled() * pooled(); }
  // Windows one below the other, of an image.
  __device__ int image_pairs() const { return (pooled() + 1) / 2 * pooled(); }
  __device__ int DivideByPairs(uint32_t n) const {
    return kImage > 0 ? n / image_pairs() : Divide(n, sizes_.pairs_magic);
  }
  __device__ int DivideByPooled(uint32_t n) const {
    return kImage > 0 ? n / pooled() : Divide(n, sizes_.pooled_magic);
  }
  __device__ char* image(int i) const {
    return shared_ + Shared::ImagesAt(kSize) + i * Shared::ImageBytes(size());
  }

  // [step][high and low][tile][row of the pair][lane].
  __device__ __forceinline__ void StoreFilters(const uint4* from) const {
    for (int i = threadIdx.x; i < kSteps * Shared::kTiles * 32;
         i += kFloatGroupThreads) {
      const int lane = i % 32, tile = i / 32 % Shared::kTiles;
      const int step = i / 32 / Shared::kTiles;
      auto* const words =
          reinterpret_cast<uint32_t*>(shared_ + 2 * step * Shared::kPartBytes +
                                      tile * Shared::kTileBytes + 4 * lane);
      const uint4 v = from[i];
      words[0] = v.x;
      words[32] = v.y;
      words[Shared::kPartBytes / 4] = v.z;
      words[Shared::kPartBytes / 4 + 32] = v.w;
    }
    if (threadIdx.x < count_) {
      *reinterpret_cast<uint4*>(image(threadIdx.x) + 4 * pixels()) =
          make_uint4(0, 0, 0, 0);
    }
    FenceAsyncProxy();
  }

  // The filters whose windows a lane finishes: of two tiles, of which it has
  // the whole windows, and of the third, of which it and its neighbour have
  // half each.
  static __device__ __forceinline__ int FilterOf(int i) {
    return i == 0 ? lane() % 4 : 4 + lane() % 4 / 2;
  }

  // Whether two halves hold a scaled value, which is no denormal half, as well
  // as they hold any. Products of the others would lose more than float32 does
  // (docs/numerics.md).
  static __device__ __forceinline__ bool Keeps(float v) {
    const __half high = __float2half_rn(v);
    const float rest = v - __half2float(high);
    const float lost = rest - __half2float(__float2half_rn(rest));
    return fabsf(lost) <= kFloatFrontMostLost * fabsf(v);
  }

  // Puts in the place of each two pixels of an image a word of their high
  // halves and one of their low ones, scaled by a power of two, if halves keep
  // all pixels; otherwise they stay, and the factor is 0. By a warp. Returns
  // whether they are kept.
  __device__ __forceinline__ bool Split(int number) const {
    auto* const vectors = reinterpret_cast<float4*>(image(number)) + lane();
    const int count = pixels() / 4;
    float v[kFloatGroupVectors][4];
    Extent own;
#pragma unroll
    for (int j = 0; j < kFloatGroupVectors; ++j) {
      const float4 four =
          lane() + 32 * j < count ? vectors[32 * j] : make_float4(0, 0, 0, 0);
      v[j][0] = four.x, v[j][1] = four.y, v[j][2] = four.z, v[j][3] = four.w;
#pragma unroll
      for (const float pixel : v[j]) own.Add(pixel);
    }
    const Extent all = own.OfWarp();
    const uint32_t most = all.Most();
    const int power = most == 0 ? 0 : PowerOf(most);
    bool kept = IsFiniteMagnitude(most) && abs(power) <= kFloatFrontMostPower;
    if (kept) {
      const float scale = PowerOf2(14 - power);
#pragma unroll
      for (int j = 0; j < kFloatGroupVectors; ++j) {
#pragma unroll
        for (float& pixel : v[j]) pixel *= scale;
      }
      // A larger one loses no bits of its low half, once it is scaled.
      constexpr float kLossless = 0.25f;
      if (all.IsBelow(kLossless * PowerOf2(power - 14))) {
        // Scaling may have taken the least ones to zero.
        kept = !all.IsBelow(kLeastNormal * PowerOf2(power - 14));
#pragma unroll
        for (int j = 0; j < kFloatGroupVectors; ++j) {
#pragma unroll
          for (const float pixel : v[j]) kept = kept && Keeps(pixel);
        }
        kept = __all_sync(0xffffffff, kept);
      }
    }
    if (lane() == 0) factors_[number] = kept ? PowerOf2(power - 14) : 0;
    if (!kept) return false;
#pragma unroll
    for (int j = 0; j < kFloatGroupVectors; ++j) {
      const SplitPair a = SplitHalves(v[j][0], v[j][1]);
      const SplitPair b = SplitHalves(v[j][2], v[j][3]);
      if (lane() + 32 * j < count) {
        *reinterpret_cast<uint4*>(vectors + 32 * j) =
            make_uint4(a.high, a.low, b.high, b.low);
      }
    }
    return true;
  }

  // Two windows, one below the other: where the upper one's pixels begin, its
  // place in the first filter's results, and the image's factor; 0 if there are
  // no such results, or multiply-adds compute them.
  struct Pair {
    const char* pixels;
    int place;
    float factor;
    bool has_lower;
  };
  __device__ __forceinline__ Pair PairOf(int i, int total) const {
    // Pairs beyond the last repeat it.
    const int at = min(i, total - 1);
    const int number = DivideByPairs(at);
    const int in_image = at - number * image_pairs();
    const int row = DivideByPooled(in_image);
    const int column = in_image - row * pooled();
    return {image(number) + 16 * (row * size()) + 8 * column,
            number * sizes_.filters * area() + 2 * row * pooled() + column,
            i < total ? factors_[number] : 0,
            pooled() % 2 == 0 || 2 * row + 1 < pooled()};
  }

  // 64 pairs at a time. A lane has pixels of two.
  __device__ __forceinline__ void Multiply(
      const FrontScale (&scales)[2]) const {
    const int total = count_ * image_pairs();
    const int own = threadIdx.x / 32 % 4 * 16 + lane() / 4;
    const uint32_t columns = static_cast<uint32_t>(
        ColumnsAt(__shfl_sync(0xffffffff, SharedAddress(shared_), 0)));
    float* out[2];
    bool exists[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      // There are four at least (MakeFloatFront).
      exists[i] = i == 0 || FilterOf(i) < sizes_.filters;
      out[i] = out_ + FilterOf(i) * area();
      // Otherwise the compiler makes the pointer anew for each store, by a
      // dozen instructions.
      asm("" : "+l"(out[i]));
    }
    int tile = threadIdx.x / 128 * 64;
    Pair next[2] = {PairOf(tile + own, total), PairOf(tile + own + 8, total)};
#pragma unroll 1
    while (tile < total) {
      const Pair pairs[2] = {next[0], next[1]};
      tile += 64 * kFloatGroups;
      uint32_t high[kSteps + 1][4], low[kSteps + 1][4];
      LoadWindows(pairs, high, low);
      float sums[2][kSums];
      FenceProducts();
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        Start(columns, high, low, below, sums[below]);
      }
      // The next tile's, while the products run.
      next[0] = PairOf(tile + own, total);
      next[1] = PairOf(tile + own + 8, total);
      // Of four filters a lane finishes both pairs' windows, of the others
      // one's: then its neighbour finishes the other's.
      const bool odd = lane() % 2 == 1;
      const int places[3] = {pairs[0].place, pairs[1].place,
                             odd ? pairs[1].place : pairs[0].place};
      const float factors[3] = {
          pairs[0].factor * scales[0].factor,
          pairs[1].factor * scales[0].factor,
          (odd ? pairs[1].factor : pairs[0].factor) * scales[1].factor};
      const bool lower[3] = {pairs[0].has_lower, pairs[1].has_lower,
                             odd ? pairs[1].has_lower : pairs[0].has_lower};
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        if (below == 0) {
          WaitForProducts<1>();
        } else {
          WaitForProducts<0>();
        }
        float most[3];
        Pool(sums[below], odd, most);
#pragma unroll
        for (int i = 0; i < 3; ++i) {
          if (exists[i / 2] && factors[i] != 0 && (below == 0 || lower[i])) {
            out[i / 2][places[i] + below * pooled()] =
                Apply<kActivation>(most[i] * factors[i] + scales[i / 2].bias);
          }
        }
      }
    }
  }

  __device__ __forceinline__ void LoadWindows(
      const Pair (&pairs)[2], uint32_t (&high)[kSteps + 1][4],
      uint32_t (&low)[kSteps + 1][4]) const {
    const int row_bytes = 4 * size();
    const char* from[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      from[i] = pairs[i].pixels + 8 * (lane() % 4);
    }
#pragma unroll
    for (int s = 0; s < kSteps + 1; ++s) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {  // row 2 s + j / 2 of pair j % 2
        const auto words = *reinterpret_cast<const uint2*>(from[j % 2]);
        high[s][j] = words.x;
        low[s][j] = words.y;
        from[j % 2] += row_bytes;
      }
    }
  }

  // The products of the pairs' upper or lower windows, small ones first, of
  // which the tensor cores then cut off little. `columns` is the lower word of
  // the first descriptor: an address in it does not overflow, so that an
  // addition makes another.
  static __device__ __forceinline__ void Start(
      uint32_t columns, const uint32_t (&high)[kSteps + 1][4],
      const uint32_t (&low)[kSteps + 1][4], int below, float (&sums)[kSums]) {
    const auto part = [&](int i) -> uint64_t {
      return ColumnsAt(0) >> 32 << 32 | (columns + i * Shared::kPartBytes / 16);
    };
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      StartProduct(sums, low[s + below], part(2 * s), s > 0);
      StartProduct(sums, high[s + below], part(2 * s + 1));
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      StartProduct(sums, high[s + below], part(2 * s));
    }
    CommitProducts();
  }

  // The largest of windows. Columns are 2 f + dx of tile dy for the first four
  // filters, and 4 f + 2 dy + dx of the third tile (front_plan.h).
  static __device__ __forceinline__ void Pool(const float (&sums)[kSums],
                                              bool odd, float (&most)[3]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float* const own = sums + 2 * i;
      most[i] = fmaxf(fmaxf(own[0], own[1]), fmaxf(own[4], own[5]));
    }
    const float top = fmaxf(sums[8], sums[9]);
    const float bottom = fmaxf(sums[10], sums[11]);
    const float other = __shfl_xor_sync(0xffffffff, odd ? top : bottom, 1);
    most[2] = fmaxf(odd ? bottom : top, other);
  }

  // An image's results by multiply-adds.
  __device__ __forceinline__ void ComputeImage(int number) const {
    const auto* const from = reinterpret_cast<const float*>(image(number));
    float* const to = out_ + number * sizes_.filters * area();
    for (int i = threadIdx.x; i < area(); i += kFloatGroupThreads) {
      const int y = DivideByPooled(i), x = i - y * pooled();
      FinishWindow<kSize, kActivation>(from + 2 * (y * size() + x), sizes_,
                                       parameters_, area(), to + i);
    }
  }

  const FloatFrontSizes& sizes_;
  const FloatFrontParameters<kSize>& parameters_;
  char* const shared_;
  const uint32_t barriers_;
  float* const factors_;
  const int count_;
  const float* const in_;
  float* const out_;
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

// As FloatFrontKernel; images begin at multiples of 16 bytes.
template <int kSize, Activation kActivation, int kImage>
__global__ void __launch_bounds__(kFloatGroupThreads, kFloatGroupBlocks)
    FloatFrontGroupKernel(
        const float* in, const uint4* filters, const FrontScale* scales,
        float* out, const __grid_constant__ FloatFrontSizes sizes,
        const __grid_constant__ FloatFrontParameters<kSize> parameters) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  LetNextKernelStart();
  extern __shared__ __align__(128) char float_group_shared[];
  __shared__ uint64_t barriers[kFloatGroupImages];
  __shared__ float factors[kFloatGroupImages];
  FloatFrontGroups<kSize, kActivation, kImage>(
      float_group_shared, barriers, factors, sizes, parameters, in, out)
      .Run(filters, scales);
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_FLOAT_FRONT_WARPGROUPS_CUH_
