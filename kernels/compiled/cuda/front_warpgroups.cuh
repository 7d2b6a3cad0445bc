// The kernel of a network's front by products of warpgroups; front.cu tells the
// idea. For compute capability 9.0; in code for any other GPU its body is
// empty.
#ifndef KERNELS_COMPILED_CUDA_FRONT_WARPGROUPS_CUH_
#define KERNELS_COMPILED_CUDA_FRONT_WARPGROUPS_CUH_

#include <cstdint>

#include "kernels/compiled/cuda/front_plan.h"
#include "kernels/compiled/cuda/front_strips.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/cuda/activation.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

// kTiles: of all filters, an even number.
template <int kSteps, int kTiles>
class FrontWarpgroups : private FrontStrips</*kWarpgroups=*/true> {
 public:
  __device__ FrontWarpgroups(char* shared, FrontScale* scales,
                             const uint8_t* images, float* out,
                             const FrontLaunch& launch)
      : FrontStrips(shared, scales, images, out, launch),
        columns_(static_cast<uint32_t>(
            ColumnsAt(__shfl_sync(0xffffffff, SharedAddress(shared), 0)))),
        result_(reinterpret_cast<float*>(shared + launch.result_at())) {}

  __device__ void Run(char* shared, const uint4* filters,
                      const FrontScale* scales) {
    StoreFilters(shared, filters);
    const auto wait = [] {
      // Until the copy engine has read the result before this one.
      if (threadIdx.x == 0) WaitForBulkReads();
    };
    ForEach(scales, wait, [&](int64_t image, int) {
      WithActivation(shape().problem.activation, [&](auto activation) {
        Convolve<decltype(activation)::value>();
      });
      StoreResult(image);
    });
    if (threadIdx.x == 0) WaitForBulkStores();
  }

 private:
  // Filters are [step][high and low][tile][row of the pair][lane].
  static constexpr int kTileBytes = 256, kPartBytes = kTiles * kTileBytes;
  static constexpr int kOwn = kTiles / 2;  // of the lane's filters

  __device__ __forceinline__ void StoreFilters(char* to, const uint4* from) {
    for (int i = threadIdx.x; i < kSteps * kTiles * 32; i += threads()) {
      const int lane = i % 32, tile = i / 32 % kTiles, step = i / 32 / kTiles;
      auto* const words = reinterpret_cast<uint32_t*>(
          to + 2 * step * kPartBytes + tile * kTileBytes + 4 * lane);
      const uint4 v = from[i];
      words[0] = v.x;
      words[32] = v.y;
      words[kPartBytes / 4] = v.z;
      words[kPartBytes / 4 + 32] = v.w;
    }
    FenceAsyncProxy();
  }

  // An image's results, 64 runs at a time. A lane has two of them, and the
  // windows of every fourth filter. Runs in neighbouring groups of lanes are
  // neighbours or four apart, so that they meet different banks
  // (FrontShape::result_plane).
  template <Activation kActivation>
  __device__ __forceinline__ void Convolve() {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const int pooled = shape().pooled, filters = shape().problem.filters;
    const bool by_planes = shape().by_planes();
    const int own_run = by_planes ? warp * 16 + lane / 4 : lane / 4 * 4 + warp;
    const int second = by_planes ? 8 : 32;  // run
    // What stands for filters that do not exist is the last one.
    float* out[kOwn];
    FrontScale scales[kOwn];
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      const int own = 4 * j + lane % 4;
      out[j] = result_ + min(own, filters - 1) * shape().result_plane();
      scales[j] = scales_[own];
    }
    const int padded = launch_.padded_runs();
#pragma unroll 1
    for (int tile = threadIdx.x / kFrontThreads * 64; tile < padded;
         tile += threads() / kFrontThreads * 64) {
      const int at = tile + own_run;
      const FrontRun runs[2] = {runs_[at], runs_[at + second]};
      uint32_t pixels[kSteps + 1][4];
      LoadWindows(runs, pixels);
      // The upper positions are finished while the lower ones are multiplied,
      // if there are registers for the sums of both.
      constexpr bool kBoth = kTiles == 2;
      float sums[2][4 * kTiles];
      FenceProducts();
      Start(pixels, 0, sums[0]);
      if constexpr (kBoth) {
        Start(pixels, 1, sums[1]);
        WaitForProducts<1>();
        Finish<kActivation>(sums[0], runs, out, scales, 0);
      } else {
        WaitForProducts<0>();
        Finish<kActivation>(sums[0], runs, out, scales, 0);
        FenceProducts();
        Start(pixels, 1, sums[1]);
      }
      WaitForProducts<0>();
      Finish<kActivation>(sums[1], runs, out, scales, pooled);
    }
  }

  // The descriptor of a part of the filters. An address in a descriptor does
  // not overflow, so that an addition makes another.
  __device__ __forceinline__ uint64_t ColumnsOf(int part) const {
    return ColumnsAt(0) >> 32 << 32 | (columns_ + part * kPartBytes / 16);
  }

  // The products of the runs' upper or lower positions.
  __device__ __forceinline__ void Start(const uint32_t (&pixels)[kSteps + 1][4],
                                        int below,
                                        float (&sums)[4 * kTiles]) const {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      StartProduct(sums, pixels[s + below], ColumnsOf(2 * s + 1), s > 0);
      StartProduct(sums, pixels[s + below], ColumnsOf(2 * s));
    }
    CommitProducts();
  }

  template <Activation kActivation>
  static __device__ __forceinline__ void Finish(
      const float (&sums)[4 * kTiles], const FrontRun (&runs)[2],
      float* const (&out)[kOwn], const FrontScale (&scales)[kOwn], int below) {
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float* const top = sums + 8 * j + 2 * i;
        out[j][runs[i].place + below] = Finished<kActivation>(
            fmaxf(fmaxf(top[0], top[1]), fmaxf(top[4], top[5])), scales[j]);
      }
    }
  }

  // The image's results.
  __device__ __forceinline__ void StoreResult(int64_t image) const {
    FenceAsyncProxy();
    __syncthreads();
    if (threadIdx.x != 0) return;
    float* const to = out_ + image * shape().pitch;
    const int plane = shape().plane(), filters = shape().problem.filters;
    if (!shape().by_planes()) {
      BulkStore(to, result_, 4 * filters * plane);
    } else {
      for (int i = 0; i < filters; ++i) {
        BulkStore(to + i * plane, result_ + i * shape().result_plane(),
                  4 * plane);
      }
    }
    CommitBulkStores();
  }

  const uint32_t columns_;  // the lower word of the first descriptor
  float* const result_;     // [filter][row][column], by result_plane
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

// images [image][row][column], out [image][filter][row][column], images by the
// shape's pitch.
template <int kSteps, int kTiles>
__global__ void __launch_bounds__(FrontBlockGroups(kTiles) * kFrontThreads,
                                  FrontGroups(kTiles) /
                                      FrontBlockGroups(kTiles))
    FrontWarpgroupKernel(const uint8_t* images, const uint4* filters,
                         const FrontScale* scales, float* out,
                         const __grid_constant__ FrontLaunch launch) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  LetNextKernelStart();
  extern __shared__ __align__(16) char front_group_shared[];
  __shared__ FrontScale own_scales[2 * kTiles];
  FrontWarpgroups<kSteps, kTiles>(front_group_shared, own_scales, images, out,
                                  launch)
      .Run(front_group_shared, filters, scales);
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_FRONT_WARPGROUPS_CUH_
