// The kernel of a convolution with max pooling for one channel, whose windows
// have 2 x 2 sums; convolve_pool.cu tells the idea. Needs compute capability
// 8.0.
#ifndef KERNELS_COMPILED_CUDA_CONVOLVE_POOL_WINDOWS_CUH_
#define KERNELS_COMPILED_CUDA_CONVOLVE_POOL_WINDOWS_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/compiled/cuda/convolve_pool.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

template <int kInstance>
class ConvolvePoolWindows : private ConvolvePoolItems {
 public:
  __device__ ConvolvePoolWindows(char* shared, ConvolvePoolFilter* known,
                                 const PackedConvolvePool& packed,
                                 const float* in, float* out,
                                 const ConvolvePoolLaunch& launch)
      : ConvolvePoolItems(shared, known, packed, in, out, launch),
        windows_(reinterpret_cast<Window*>(shared + launch.runs_at())) {}

  __device__ void Run(bool vector) {
    LoadFilters();
    FindWindows();
    ForEach</*kSingle=*/true>(vector, [&](int64_t item, const Image* images) {
      Multiply(item, images);
    });
  }

 private:
  static constexpr ConvolvePoolInstance kOwn =
      kConvolvePoolInstances[kInstance];
  static constexpr int kTiles = kOwn.tiles, kSteps = kOwn.steps();
  static constexpr int kWarps = kConvolvePoolThreads / 32;

  // Where a window begins in the words, in bytes, and its first result.
  struct Window {
    int words, place;
  };

  __device__ __forceinline__ void LoadFilters() {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        vectors_[s][j] = vectors()[(s * kTiles + j) * 32 + threadIdx.x % 32];
      }
    }
  }

  // Those beyond the last repeat it.
  __device__ __forceinline__ void FindWindows() {
    for (int i = threadIdx.x; i < launch_.padded_runs();
         i += kConvolvePoolThreads) {
      const int run = min(i, launch_.runs() - 1);
      const int image = Divide(run, launch_.area_magic);
      const int window = run - image * launch_.area();
      const int y = Divide(window, launch_.pooled_magic);
      const int x = window - y * shape().pooled;
      windows_[i] = {
          image * launch_.image_words() * 8 + y * 2 * row_bytes_ + x * 8,
          image * problem().filters * pooled_plane() + window};
    }
  }

  // 16 windows at a time. A lane has two windows' sums of the
  // filters lane % 4 and 4 + lane % 4.
  __device__ __forceinline__ void Multiply(int64_t item,
                                           const Image* images_of) const {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const char* const own = reinterpret_cast<const char*>(words_) +
                            lane % 4 * 8 + first_band(item) * 2 * row_bytes_;
    float* const out =
        out_ +
        (first_image(item) * problem().filters + first_filter_ + lane % 4) *
            pooled_plane() +
        first_band(item) * shape().pooled;
    const int end = images(item) * launch_.area();
    const int filters = problem().filters - first_filter_ - lane % 4;
#pragma unroll 1
    for (int tile = warp; tile < launch_.tiles(); tile += kWarps) {
      const int at = 16 * tile + lane / 4;
      const Window windows[2] = {windows_[at], windows_[at + 8]};
      float large[kTiles][4] = {}, small[kTiles][4] = {};
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        uint32_t high[4], low[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {  // window i % 2, row i / 2
          const uint2 v = *reinterpret_cast<const uint2*>(
              own + windows[i % 2].words + (2 * s + i / 2) * row_bytes_);
          high[i] = v.x;
          low[i] = v.y;
        }
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
          MultiplyAdd(low, vectors_[s][j].x, vectors_[s][j].y, small[j]);
        }
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
          MultiplyAdd(high, vectors_[s][j].x, vectors_[s][j].y, large[j]);
        }
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
          MultiplyAdd(high, vectors_[s][j].z, vectors_[s][j].w, small[j]);
        }
      }
      uint32_t doubtful = 0;  // of the lane's results
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int run = min(at + 8 * i, launch_.runs() - 1);
        if (run >= end) continue;  // of an image that does not exist
        const Image& image = images_of[Divide(run, launch_.area_magic)];
#pragma unroll
        for (int f = 0; f < kTiles / 2; ++f) {
          if (4 * f >= filters) continue;
          float largest = -INFINITY;
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            largest = fmaxf(largest, large[2 * f + j / 2][2 * i + j % 2] +
                                         small[2 * f + j / 2][2 * i + j % 2]);
          }
          const Filter& filter = known_[4 * f + lane % 4];
          if (!IsCertain(largest, image, filter)) doubtful |= 1 << (2 * f + i);
          out[windows[i].place + 4 * f * pooled_plane()] =
              Finished(ScaledBack(largest, image, filter), filter);
        }
      }
#pragma unroll 1
      for (; doubtful != 0; doubtful &= doubtful - 1) {
        const int i = (__ffs(doubtful) - 1) % 2, f = (__ffs(doubtful) - 1) / 2;
        const int run = min(at + 8 * i, launch_.runs() - 1);
        const int number = Divide(run, launch_.area_magic);
        const int in_group = 4 * f + lane % 4;
        const int place = i == 0 ? windows[0].place : windows[1].place;
        out[place + 4 * f * pooled_plane()] =
            Finished(Exact(first_image(item) + number, first_filter_ + in_group,
                           first_band(item) * shape().pooled + run -
                               number * launch_.area()),
                     known_[in_group]);
      }
    }
  }

  Window* const windows_;
  uint4 vectors_[kSteps][kTiles];
};

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONVOLVE_POOL_WINDOWS_CUH_
