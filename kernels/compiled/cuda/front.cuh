// The kernel of a network's front; front.cu tells the idea. Needs compute
// capability 8.0; below it its body is empty.
#ifndef KERNELS_COMPILED_CUDA_FRONT_CUH_
#define KERNELS_COMPILED_CUDA_FRONT_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/compiled/cuda/front_plan.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/split.cuh"
#include "kernels/cuda/tanh.cuh"
#include "kernels/layers/cuda/enlarge.cuh"

namespace convlab::cuda {

// What a filter's sums are multiplied by, and what is added.
struct FrontScale {
  float factor, bias;
};

// Two positions, one below the other: where the upper one's window begins in
// the pixels, in words, and its place in the strip's result.
struct FrontRun {
  int window, place;
};

template <int kSteps, int kTiles>
class FrontBlock {
 public:
  __device__ FrontBlock(char* shared, const uint8_t* images, float* out,
                        const FrontLaunch& launch)
      : launch_(launch),
        scales_(reinterpret_cast<FrontScale*>(shared)),
        taps_(reinterpret_cast<Tap*>(shared + launch.scale_bytes())),
        runs_(reinterpret_cast<FrontRun*>(shared + launch.runs_at())),
        across_(reinterpret_cast<float*>(shared + launch.across_at())),
        source_(reinterpret_cast<float*>(shared + launch.source_at())),
        pixels_(reinterpret_cast<uint32_t*>(shared + launch.pixels_at())),
        enlarging_(launch.shape.problem.size, launch.shape.problem.enlarged),
        group_warps_(launch.wide == 1 ? kWarps : kWarps / 2),
        in_block_(threadIdx.x / 32 < group_warps_ ? 0 : 1),
        group_(blockIdx.y * launch.wide + in_block_),
        images_(images),
        out_(out) {}

  __device__ void Run(const uint4* filters, const FrontScale* scales) {
    Prepare(filters, scales);
    __syncthreads();
    const int64_t strips = launch_.images * launch_.strips;
    for (int64_t i = blockIdx.x; i < strips; i += gridDim.x) {
      const int64_t image = i / launch_.strips;
      // The last strip has as many rows as the others, some of them again.
      const int first = min(static_cast<int>(i % launch_.strips) * launch_.rows,
                            shape().pooled - launch_.rows);
      // Its barriers part the strips: who is in it first writes only what
      // nobody reads after them.
      Enlarge(image, 2 * first);
      // For the factors, which come while the first strip is enlarged.
      WaitForCopies<0>();
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
    const int factors = 2 * kTiles * launch_.wide;
    for (int i = own; i < factors; i += kFrontThreads) {
      StartCopy<sizeof(FrontScale)>(
          scales_ + i, scales + static_cast<int>(blockIdx.y) * factors + i,
          true);
    }
    CommitCopies();
    for (int i = own; i < enlarged(); i += kFrontThreads) {
      taps_[i] = enlarging_.TapOf(i);
    }
    // Where rows are odd, the last runs begin a row higher; those beyond the
    // last repeat it. What is computed twice is stored twice.
    for (int i = own; i < launch_.padded_runs(); i += kFrontThreads) {
      const int run = min(i, launch_.runs() - 1), pair = run / shape().pooled;
      const int x = run - pair * shape().pooled;
      const int row = min(2 * pair, launch_.rows - 2);
      runs_[i] = {row * 2 * kFrontWords + x, row * shape().pooled + x};
    }
    // Columns beyond the image stay zeros: only weights of 0 meet them. So do
    // those of the source's border. One lies behind the other.
    const int floats = launch_.source_rows() * (kFrontPitch + size() + 2);
    for (int i = own; i < floats; i += kFrontThreads) across_[i] = 0;
  }

  // The rows of pixels from `first` on, as halves.
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
    if (enlarging_.at_once()) {
      Mix<true>(first, first_source);
    } else {
      Mix<false>(first, first_source);
    }
  }

  template <bool kAtOnce>
  __device__ __forceinline__ void Mix(int first, int first_source) {
    const int pairs = shape().columns / 2, rows = launch_.pixel_rows();
    const int last = enlarged() - 1;
#pragma unroll 2
    for (int i = threadIdx.x; i < rows * pairs; i += kFrontThreads) {
      const int r = Divide(i, shape().pairs_magic), x = i - r * pairs;
      // Rows beyond the last repeat it: only weights of 0 meet them.
      const Tap tap = taps_[min(first + r, last)];
      const auto* const top =
          reinterpret_cast<const float2*>(across_ + (tap.first - first_source) *
                                                        kFrontPitch) +
          x;
      const float2 a = top[0], b = top[kFrontPitch / 2];
      pixels_[r * kFrontWords + x] = enlarging_.DownPair<kAtOnce>(tap, a, b);
    }
  }

  // Rows of the source, counted with a border of zeros. Images may be in the
  // host's memory, so that every wait counts: words are loaded where all rows
  // consist of them.
  __device__ void LoadSource(int64_t image, int first, int rows) {
    const uint8_t* const from = images_ + image * size() * size();
    const int pitch = size() + 2;
    if (shape().words_magic != 0 &&
        reinterpret_cast<uintptr_t>(images_) % 4 == 0) {
      const int row_words = size() / 4, begin = (first - 1) * row_words;
      const auto* const words = reinterpret_cast<const uint32_t*>(from) + begin;
#pragma unroll 2
      for (int i = threadIdx.x; i < rows * row_words; i += kFrontThreads) {
        const bool inside = i + begin >= 0 && i + begin < size() * row_words;
        const uint32_t word = inside ? words[i] : 0;
        // Two floats of a row are its border.
        const int row = Divide(i, shape().words_magic);
        float* const to = source_ + 4 * i + 2 * row + 1;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          to[j] = static_cast<float>(word >> (8 * j) & 0xff);
        }
      }
      return;
    }
#pragma unroll 4
    for (int i = threadIdx.x; i < rows * pitch; i += kFrontThreads) {
      const int row = Divide(i, shape().source_magic);
      const int y = first + row - 1, x = i - row * pitch - 1;
      const bool inside = y >= 0 && y < size() && x >= 0 && x < size();
      source_[i] = inside ? static_cast<float>(from[y * size() + x]) : 0;
    }
  }

  // The strip's results. A lane's rows of a product are the positions of two
  // runs, whose windows share most of their pixels; a warp takes 16 runs at a
  // time.
  __device__ void Convolve(int64_t image, int first) {
    WithActivation(shape().problem.activation, [&](auto activation) {
      Convolve<decltype(activation)::value>(image, first);
    });
  }
  template <Activation kActivation>
  __device__ __forceinline__ void Convolve(int64_t image, int first) {
    constexpr int kPaired = kTiles / 2 * 2, kSingle = kTiles % 2;
    const int warp = threadIdx.x / 32 - in_block_ * group_warps_;
    const int lane = threadIdx.x % 32;
    const int pooled = shape().pooled, filters = shape().problem.filters;
    // Of two tiles a lane finishes the filter of its columns, at both of its
    // positions; of a single tile it finishes one of two. What stands for
    // filters that do not exist is the last one.
    const int lane_filter[2] = {lane % 4, 2 * kPaired + lane % 4 / 2};
    const auto of = [&](int in_group) -> float* {
      const int filter = min(group_ * 2 * kTiles + in_group, filters - 1);
      return out_ + ((image * filters + filter) * pooled + first) * pooled;
    };
    float* out[kPaired / 2 + kSingle];
#pragma unroll
    for (int j = 0; j < kPaired / 2 + kSingle; ++j) {
      const int in_group =
          j < kPaired / 2 ? 4 * j + lane_filter[0] : lane_filter[1];
      out[j] = of(in_group);
    }
    const FrontScale* const scales = scales_ + in_block_ * 2 * kTiles;
    const int padded = launch_.padded_runs();
#pragma unroll 1
    for (int at = 16 * warp; at < padded; at += 16 * group_warps_) {
      const FrontRun runs[2] = {runs_[at + lane / 4], runs_[at + lane / 4 + 8]};
      const uint32_t* const windows[2] = {pixels_ + lane % 4 + runs[0].window,
                                          pixels_ + lane % 4 + runs[1].window};
      uint32_t pixels[kSteps + 1][4];  // pairs of rows
#pragma unroll
      for (int s = 0; s < kSteps + 1; ++s) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          pixels[s][i] = windows[i % 2][(2 * s + i / 2) * kFrontWords];
        }
      }
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        float sums[kTiles][4] = {};
#pragma unroll
        for (int s = 0; s < kSteps; ++s) {
#pragma unroll
          for (int j = 0; j < kTiles; ++j) {
            MultiplyAdd(pixels[s + below], filters_[s][j].z, filters_[s][j].w,
                        sums[j]);
          }
#pragma unroll
          for (int j = 0; j < kTiles; ++j) {
            MultiplyAdd(pixels[s + below], filters_[s][j].x, filters_[s][j].y,
                        sums[j]);
          }
        }
        const auto finish = [&](int j, int place, float most) {
          float* const to = out[j] + place;
          const FrontScale scale =
              scales[j < kPaired / 2 ? 4 * j + lane_filter[0] : lane_filter[1]];
          const float value = most * scale.factor + scale.bias;
          (below == 0 ? to : to + pooled)[0] = kActivation == Activation::kTanh
                                                   ? Tanh(value)
                                                   : Apply<kActivation>(value);
        };
#pragma unroll
        for (int j = 0; j < kPaired / 2; ++j) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float top = fmaxf(sums[2 * j][2 * i], sums[2 * j][2 * i + 1]);
            const float bottom =
                fmaxf(sums[2 * j + 1][2 * i], sums[2 * j + 1][2 * i + 1]);
            finish(j, runs[i].place, fmaxf(top, bottom));
          }
        }
        if (kSingle == 1) {
          finish(kPaired / 2, lane % 2 == 1 ? runs[1].place : runs[0].place,
                 Pool(sums[kTiles - 1]));
        }
      }
    }
  }

  // The largest of a window in a single tile. A lane has two rows' sums, each
  // at two neighbouring places of the window, and its neighbour has them at the
  // other two. Each finishes one row.
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
  FrontRun* const runs_;
  float* const across_;     // the source's rows, as wide as the pixels
  float* const source_;     // with a border of zeros
  uint32_t* const pixels_;  // [row][column], words of two halves
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
__global__ void __launch_bounds__(kFrontThreads, FrontBlocks(kSteps, kTiles))
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
// one filter, the last one for those beyond M.
__global__ void PackFrontKernel(const float* filters, const float* bias,
                                uint4* vectors, FrontScale* scales,
                                const __grid_constant__ FrontShape shape) {
#if __CUDA_ARCH__ >= 800
  const int m = blockIdx.x, K = shape.problem.kernel_size;
  const int filter = min(m, shape.problem.filters - 1);
  const float* const own = filters + filter * K * K;
  uint32_t most = 0;
  for (int i = 0; i < K * K; ++i) most = LargerMagnitude(most, own[i]);
  if (threadIdx.x == 0) {
    // In two steps, since the factor may be below the normal range.
    scales[m] = {IsFiniteMagnitude(most) ? PowerOf2(PowerOf(most)) * 0x1p-14f
                                         : NotANumber(),
                 bias == nullptr ? 0 : bias[filter]};
  }
  const auto weight = [&](int p, int q) -> float {
    const bool inside = p >= 0 && p < K && q >= 0 && q < K;
    return inside ? own[p * K + q] : 0;
  };
  const int group = m / (2 * shape.tiles), in_group = m % (2 * shape.tiles);
  const bool paired = in_group / 4 * 2 + 1 < shape.tiles;
  auto* const words = reinterpret_cast<uint32_t*>(vectors);
  // [step][place][pixels][row of the pair]
  for (int i = threadIdx.x; i < shape.steps * 32; i += blockDim.x) {
    const int row = i % 2, t = i / 2 % 4, place = i / 8 % 4, step = i / 32;
    const int p = 2 * step + row - place / 2;
    const int q = 2 * t - place % 2;
    const SplitPair split = SplitWeights(most, weight(p, q), weight(p, q + 1));
    const int tile = paired ? in_group / 4 * 2 + place / 2 : in_group / 2;
    const int column =
        paired ? in_group % 4 * 2 + place % 2 : in_group % 2 * 4 + place;
    const int vector =
        ((group * shape.steps + step) * shape.tiles + tile) * 32 + column * 4 +
        t;
    words[4 * vector + row] = split.high;
    words[4 * vector + row + 2] = split.low;
  }
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_FRONT_CUH_
