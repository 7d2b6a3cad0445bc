// The kernel of a network's front; front.cu tells the idea. Needs compute
// capability 8.0; below it its body is empty.
#ifndef KERNELS_COMPILED_CUDA_FRONT_CUH_
#define KERNELS_COMPILED_CUDA_FRONT_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/compiled/cuda/front_plan.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/split.cuh"
#include "kernels/layers/cuda/enlarge.cuh"

namespace convlab::cuda {

// What a filter's sums are multiplied by, and what is added.
struct FrontScale {
  float factor, bias;
};

template <int kSteps, int kTiles>
class FrontBlock {
 public:
  __device__ FrontBlock(char* shared, const uint8_t* images, float* out,
                        const FrontLaunch& launch)
      : launch_(launch),
        scales_(reinterpret_cast<FrontScale*>(shared)),
        taps_(reinterpret_cast<Tap*>(shared + launch.scale_bytes())),
        across_(reinterpret_cast<float*>(shared + launch.across_at())),
        source_(reinterpret_cast<float*>(shared + launch.source_at())),
        pixels_(reinterpret_cast<__half2*>(shared + launch.pixels_at())),
        enlarging_(launch.shape.problem.size, launch.shape.problem.enlarged),
        group_warps_(launch.shape.wide == 1 ? kWarps : kWarps / 2),
        in_block_(threadIdx.x / 32 < group_warps_ ? 0 : 1),
        group_(blockIdx.y * launch.shape.wide + in_block_),
        images_(images),
        out_(out) {}

  __device__ void Run(const uint4* filters, const FrontScale* scales) {
    Prepare(filters, scales);
    __syncthreads();
    const int64_t strips = launch_.images * launch_.strips;
    for (int64_t i = blockIdx.x; i < strips; i += gridDim.x) {
      const int64_t image = i / launch_.strips;
      const int first = static_cast<int>(i % launch_.strips) * launch_.rows;
      // Its barriers part the strips: who is in it first writes only what
      // nobody reads after them.
      Enlarge(image, 2 * first);
      __syncthreads();
      Convolve(image, first);
    }
  }

 private:
  static constexpr int kWarps = kFrontThreads / 32;

  using Tap = SmallInterpolation::Tap;

  __device__ const FrontShape& shape() const { return launch_.shape; }
  __device__ int size() const { return shape().problem.size; }
  __device__ int enlarged() const { return shape().problem.enlarged; }
  // What stays for all strips: filters in registers, taps, and factors.
  __device__ void Prepare(const uint4* filters, const FrontScale* scales) {
    const int own = threadIdx.x;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        filters_[s][j] =
            filters[((group_ * kSteps + s) * kTiles + j) * 32 + own % 32];
      }
    }
    const int factors = 2 * kTiles * shape().wide;
    for (int i = own; i < factors; i += kFrontThreads) {
      scales_[i] = scales[static_cast<int>(blockIdx.y) * factors + i];
    }
    for (int i = own; i < enlarged(); i += kFrontThreads) {
      taps_[i] = enlarging_.TapOf(i);
    }
  }

  // The rows of pixels from `first` on, as halves. Rows and columns beyond the
  // image are zeros: only weights of 0 meet them.
  __device__ void Enlarge(int64_t image, int first) {
    const int rows = launch_.pixel_rows();
    const int first_source = taps_[first].first;
    const int last = min(first + rows, enlarged()) - 1;
    // Two rows are mixed.
    const int source_rows = taps_[last].first + 2 - first_source;
    LoadSource(image, first_source, source_rows);
    __syncthreads();
    const int own = threadIdx.x, pitch = size() + 2;
    for (int i = own; i < source_rows * enlarged(); i += kFrontThreads) {
      const int r = Divide(i, shape().enlarged_magic);
      const int x = i - r * enlarged();
      across_[r * kFrontPitch + x] =
          enlarging_.Across(taps_[x], source_ + r * pitch);
    }
    __syncthreads();
    const int pairs = shape().columns / 2;
#pragma unroll 2
    for (int i = own; i < rows * pairs; i += kFrontThreads) {
      const int r = Divide(i, shape().pairs_magic), x = i - r * pairs;
      const bool exists = first + r < enlarged();
      const Tap tap = taps_[exists ? first + r : first];
      const auto* const top =
          reinterpret_cast<const float2*>(across_ + (tap.first - first_source) *
                                                        kFrontPitch) +
          x;
      const float2 a = top[0], b = top[kFrontPitch / 2];
      const float left = enlarging_.Down(tap, a.x, b.x);
      const float right = enlarging_.Down(tap, a.y, b.y);
      pixels_[r * kFrontWords + x] =
          __floats2half2_rn(exists && 2 * x < enlarged() ? left : 0,
                            exists && 2 * x + 1 < enlarged() ? right : 0);
    }
  }

  // Rows of the source, counted with a border of zeros.
  __device__ void LoadSource(int64_t image, int first, int rows) {
    const uint8_t* const from = images_ + image * size() * size();
    const int pitch = size() + 2;
#pragma unroll 4
    for (int i = threadIdx.x; i < rows * pitch; i += kFrontThreads) {
      const int row = Divide(i, shape().source_magic);
      const int y = first + row - 1, x = i - row * pitch - 1;
      const bool inside = y >= 0 && y < size() && x >= 0 && x < size();
      source_[i] = inside ? static_cast<float>(from[y * size() + x]) : 0;
    }
  }

  // The strip's results, 16 positions at a time for a warp.
  __device__ void Convolve(int64_t image, int first) {
    WithActivation(shape().problem.activation, [&](auto activation) {
      Convolve<decltype(activation)::value>(image, first);
    });
  }
  template <Activation kActivation>
  __device__ __forceinline__ void Convolve(int64_t image, int first) {
    const int warp = threadIdx.x / 32 - in_block_ * group_warps_;
    const int lane = threadIdx.x % 32;
    const int pooled = shape().pooled, area = pooled * pooled;
    const int positions = min(launch_.rows, pooled - first) * pooled;
    const auto* const words =
        reinterpret_cast<const uint32_t*>(pixels_) + lane % 4;
    // The window of a position, at the lane's pixels. Positions beyond the last
    // repeat it, and their results are dropped.
    const auto window = [&](int position) {
      const int i = min(position, positions - 1);
      const int h = Divide(i, shape().pooled_magic);
      return words + h * (2 * kFrontWords - pooled) + i;
    };
    // The lane finishes one position and one filter of each tile.
    const int own_position = lane / 4 + lane % 2 * 8, own_filter = lane % 4 / 2;
    const int left = shape().problem.filters - group_ * 2 * kTiles;
    float* const out =
        out_ +
        (image * shape().problem.filters + group_ * 2 * kTiles + own_filter) *
            area +
        first * pooled + own_position;
    const FrontScale* const scales =
        scales_ + in_block_ * 2 * kTiles + own_filter;
#pragma unroll 1
    for (int at = 16 * warp; at < positions; at += 16 * group_warps_) {
      const uint32_t* const top = window(at + lane / 4);
      const uint32_t* const bottom = window(at + lane / 4 + 8);
      float sums[kTiles][4] = {};
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        const uint32_t rows[4] = {
            top[2 * s * kFrontWords], bottom[2 * s * kFrontWords],
            top[(2 * s + 1) * kFrontWords], bottom[(2 * s + 1) * kFrontWords]};
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
          MultiplyAdd(rows, filters_[s][j].z, filters_[s][j].w, sums[j]);
        }
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
          MultiplyAdd(rows, filters_[s][j].x, filters_[s][j].y, sums[j]);
        }
      }
      float values[kTiles];
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        const FrontScale scale = scales[2 * j];
        values[j] =
            Apply<kActivation>(Pool(sums[j]) * scale.factor + scale.bias);
      }
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        // No position of a filter that does not exist.
        const int end = 2 * j + own_filter < left ? positions : 0;
        StoreIfBelow(at + own_position, end, out + at + 2 * j * area,
                     values[j]);
      }
    }
  }

  // The largest of a window. A lane has two rows' sums, each at two
  // neighbouring places of the window, and its neighbour has them at the other
  // two. Each finishes one row.
  static __device__ __forceinline__ float Pool(const float (&sums)[4]) {
    const bool odd = threadIdx.x % 2 == 1;
    const float top = fmaxf(sums[0], sums[1]);
    const float bottom = fmaxf(sums[2], sums[3]);
    const float other = __shfl_xor_sync(0xffffffff, odd ? top : bottom, 1);
    return fmaxf(odd ? bottom : top, other);
  }

  const FrontLaunch& launch_;
  FrontScale* const scales_;
  Tap* const taps_;
  float* const across_;    // the source's rows, as wide as the pixels
  float* const source_;    // with a border of zeros
  __half2* const pixels_;  // [row][column]
  const SmallInterpolation enlarging_;
  const int group_warps_;  // of each group in the block
  const int in_block_;     // the warp's group there, and among all
  const int group_;
  const uint8_t* const images_;
  float* const out_;
  uint4 filters_[kSteps][kTiles];
};

// images [image][row][column], out [image][filter][row][column].
template <int kSteps, int kTiles>
__global__ void __launch_bounds__(kFrontThreads, kFrontBlocksPerMultiprocessor)
    FrontKernel(const uint8_t* images, const uint4* filters,
                const FrontScale* scales, float* out,
                const __grid_constant__ FrontLaunch launch) {
#if __CUDA_ARCH__ >= 800
  LetNextKernelStart();
  extern __shared__ __align__(16) char front_shared[];
  FrontBlock<kSteps, kTiles>(front_shared, images, out, launch)
      .Run(filters, scales);
#endif
}

// Packs the filters [M][K][K] and their bias, which may be null. A block packs
// one filter, those beyond M as zeros.
__global__ void PackFrontKernel(const float* filters, const float* bias,
                                uint4* vectors, FrontScale* scales,
                                const __grid_constant__ FrontShape shape) {
#if __CUDA_ARCH__ >= 800
  const int m = blockIdx.x, K = shape.problem.kernel_size;
  const bool exists = m < shape.problem.filters;
  const float* const own = filters + (exists ? m : 0) * K * K;
  uint32_t most = 0;
  for (int i = 0; i < K * K; ++i) most = LargerMagnitude(most, own[i]);
  if (threadIdx.x == 0) {
    // In two steps, since the factor may be below the normal range.
    scales[m] = {IsFiniteMagnitude(most) ? PowerOf2(PowerOf(most)) * 0x1p-14f
                                         : NotANumber(),
                 exists && bias != nullptr ? bias[m] : 0};
  }
  const auto weight = [&](int p, int q) -> float {
    const bool inside = exists && p >= 0 && p < K && q >= 0 && q < K;
    return inside ? own[p * K + q] : 0;
  };
  const int group = m / (2 * shape.tiles), in_group = m % (2 * shape.tiles);
  auto* const words = reinterpret_cast<uint32_t*>(vectors);
  // [step][place][pixels][row of the pair]
  for (int i = threadIdx.x; i < shape.steps * 32; i += blockDim.x) {
    const int row = i % 2, t = i / 2 % 4, place = i / 8 % 4, step = i / 32;
    const int p = 2 * step + row - place / 2;
    const int q = 2 * t - place % 2;
    const SplitPair split = SplitWeights(most, weight(p, q), weight(p, q + 1));
    const int lane = (in_group % 2 * 4 + place) * 4 + t;
    const int vector =
        ((group * shape.steps + step) * shape.tiles + in_group / 2) * 32 + lane;
    words[4 * vector + row] = split.high;
    words[4 * vector + row + 2] = split.low;
  }
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_FRONT_CUH_
