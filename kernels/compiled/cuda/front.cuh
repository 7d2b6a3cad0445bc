// The kernel of a network's front by products of warps; front.cu tells the
// idea. Needs compute capability 8.0; below it its body is empty.
#ifndef KERNELS_COMPILED_CUDA_FRONT_CUH_
#define KERNELS_COMPILED_CUDA_FRONT_CUH_

#include <cstdint>

#include "kernels/compiled/cuda/front_plan.h"
#include "kernels/compiled/cuda/front_strips.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/split.cuh"

namespace convlab::cuda {

template <int kSteps, int kTiles>
class FrontBlock : private FrontStrips</*kWarpgroups=*/false> {
 public:
  __device__ FrontBlock(char* shared, const uint8_t* images, float* out,
                        const FrontLaunch& launch)
      : FrontStrips(shared, reinterpret_cast<FrontScale*>(shared), images, out,
                    launch),
        group_warps_(launch.wide == 1 ? kWarps : kWarps / 2),
        in_block_(threadIdx.x / 32 < group_warps_ ? 0 : 1),
        group_(blockIdx.y * launch.wide + in_block_) {}

  __device__ void Run(const uint4* filters, const FrontScale* scales) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        filters_[s][j] = filters[((group_ * kSteps + s) * kTiles + j) * 32 +
                                 threadIdx.x % 32];
      }
    }
    ForEach(
        scales, [] {},
        [&](int64_t image, int first) { Convolve(image, first); });
  }

 private:
  static constexpr int kWarps = kFrontThreads / 32;

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
      return out_ + image * shape().pitch + (filter * pooled + first) * pooled;
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
      uint32_t pixels[kSteps + 1][4];
      LoadWindows(runs, pixels);
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
          (below == 0 ? to : to + pooled)[0] =
              this->template Finished<kActivation>(most, scale);
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

  const int group_warps_;  // of each group in the block
  const int in_block_;     // the warp's group there, and among all
  const int group_;
  uint4 filters_[kSteps][kTiles];
};

// images [image][row][column], out [image][filter][row][column], images by the
// shape's pitch.
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
