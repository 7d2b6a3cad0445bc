// The kernel of a convolution with max pooling; convolve_pool.cu tells the
// idea. Needs the products of warpgroups, which compute capability 9.0 has.
#ifndef KERNELS_COMPILED_CUDA_CONVOLVE_POOL_ROWS_CUH_
#define KERNELS_COMPILED_CUDA_CONVOLVE_POOL_ROWS_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/compiled/cuda/convolve_pool.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

template <int kInstance>
class ConvolvePoolRows : private ConvolvePoolItems {
 public:
  __device__ ConvolvePoolRows(char* shared, ConvolvePoolFilter* known,
                              const PackedConvolvePool& packed, const float* in,
                              float* out, const ConvolvePoolLaunch& launch)
      : ConvolvePoolItems(shared, known, packed, in, out, launch),
        filters_(SharedAddress(shared)),
        columns_(reinterpret_cast<Column*>(shared + launch.runs_at())),
        sums_(reinterpret_cast<float*>(shared + launch.sums_at())) {}

  __device__ void Run(char* shared, bool vector) {
    StoreFilters(shared);
    FindColumns();
    ForEach(vector, [&](int64_t item, const Image* images) {
      Multiply(item);
      __syncthreads();
      Finish(item, images);
    });
  }

 private:
  static constexpr ConvolvePoolInstance kOwn =
      kConvolvePoolInstances[kInstance];
  static constexpr int kTiles = kOwn.tiles, kSteps = kOwn.steps();
  static constexpr int kPool = kOwn.pool, kSize = kOwn.kernel_size;

  // A window's column: where it begins in the words, in bytes, but for the rows
  // above it, and its row in the item.
  struct Column {
    int words, row;
  };

  // Those beyond the last repeat it.
  __device__ __forceinline__ void FindColumns() {
    for (int i = threadIdx.x; i < launch_.padded_runs();
         i += kConvolvePoolThreads) {
      const int run = min(i, launch_.runs() - 1);
      const int band = Divide(run, launch_.band_magic);
      const int in_band = run - band * launch_.item_images * shape().convolved;
      const int image = Divide(in_band, launch_.convolved_magic);
      const int x = in_band - image * shape().convolved;
      columns_[i] = {(image * launch_.image_words() + x * shape().pairs) * 8,
                     band * kPool};
    }
  }

  // [high and low][step of a row][row from the last to the first, with zeros on
  // both sides][tile][first and last words][lane].
  static constexpr int kRowSteps = kOwn.row_steps;
  static constexpr int kTileBytes = 256, kBlockBytes = kTiles * kTileBytes;
  static constexpr int kPartBytes = kRowSteps * (kSize + 2) * kBlockBytes;

  __device__ __forceinline__ void StoreFilters(char* to) {
    for (int i = threadIdx.x; i < 2 * kPartBytes / 4;
         i += kConvolvePoolThreads) {
      reinterpret_cast<uint32_t*>(to)[i] = 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kSteps * kTiles * 32;
         i += kConvolvePoolThreads) {
      const int lane = i % 32, tile = i / 32 % kTiles, step = i / 32 / kTiles;
      const int row = step / kRowSteps, of_row = step % kRowSteps;
      auto* const words = reinterpret_cast<uint32_t*>(
          to + (of_row * (kSize + 2) + kSize - row) * kBlockBytes +
          tile * kTileBytes + 4 * lane);
      const uint4 v = vectors()[i];
      words[0] = v.x;
      words[32] = v.y;
      words[kPartBytes / 4] = v.z;
      words[kPartBytes / 4 + 32] = v.w;
    }
    FenceAsyncProxy();
  }

  // The largest sum of each column of a window, still scaled, for 64 columns at
  // a time.
  __device__ __forceinline__ void Multiply(int64_t item) const {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_row = first_band(item) * kPool;
    const char* const own =
        reinterpret_cast<const char*>(words_) + lane % 4 * 8;
#pragma unroll 1
    for (int tile = 0; tile < launch_.tiles(); ++tile) {
      const int at = 64 * tile + 16 * warp + lane / 4;
      const Column columns[2] = {columns_[at], columns_[at + 8]};
      const char* windows[2];
      int rows[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = first_row + columns[i].row;
        windows[i] = own + columns[i].words + row * row_bytes_;
        rows[i] = shape().convolved - row;
      }
      float large[kPool / 2][kRowSteps][16] = {}, small[kPool / 2][16] = {};
      uint32_t high[2][4], low[2][4];
      Products<0>(windows, high, low, large, small);
      WaitForProducts<0>();
      float* const to = sums_ + lane % 4 * 2 * launch_.pitch() + at;
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float largest = -INFINITY;
#pragma unroll
          for (int r = 0; r < kPool; ++r) {
            const int sum = r % 2 * 8 + 4 * j + i;
            // A band has two rows at least.
            if (r >= 2 && r >= rows[i / 2]) continue;
            float all = small[r / 2][sum];
#pragma unroll
            for (int l = 0; l < kRowSteps; ++l) all += large[r / 2][l][sum];
            largest = fmaxf(largest, all);
          }
          to[(8 * j + i % 2) * launch_.pitch() + i / 2 * 8] = largest;
        }
      }
    }
  }
  // Large products of each step of a row have sums of their own, so that little
  // is cut off them (docs/numerics.md).
  // Two rows of positions, one below the other, meet all rows of the filters
  // and a row of zeros; of four rows, the lower two begin two rows later.
  template <int kStep>
  __device__ __forceinline__ void Products(
      const char* const (&windows)[2], uint32_t (&high)[2][4],
      uint32_t (&low)[2][4], float (&large)[kPool / 2][kRowSteps][16],
      float (&small)[kPool / 2][16]) const {
    if constexpr (kStep < (kSize + kPool - 1) * kRowSteps) {
      constexpr int kRow = kStep / kRowSteps, kOfRow = kStep % kRowSteps;
      uint32_t(&h)[4] = high[kStep % 2];
      uint32_t(&l)[4] = low[kStep % 2];
      WaitForProducts<1>();  // of the step that read these registers
#pragma unroll
      for (int i = 0; i < 4; ++i) {  // position i % 2, words i / 2
        const uint2 v = *reinterpret_cast<const uint2*>(
            windows[i % 2] + kRow * row_bytes_ + 8 * (kOfRow * 8 + i / 2 * 4));
        h[i] = v.x;
        l[i] = v.y;
      }
      FenceProducts();
#pragma unroll
      for (int q = 0; q < kPool / 2; ++q) {
        const int p = kRow - 2 * q;
        if (p < 0 || p > kSize) continue;
        const uint32_t at =
            filters_ + (kOfRow * (kSize + 2) + kSize - p) * kBlockBytes;
        StartProduct(small[q], l, ColumnsAt(at));
        StartProduct(large[q][kOfRow], h, ColumnsAt(at));
        StartProduct(small[q], h, ColumnsAt(at + kPartBytes));
      }
      CommitProducts();
      Products<kStep + 1>(windows, high, low, large, small);
    }
  }

  // The rest of the pooling, and what follows it.
  __device__ __forceinline__ void Finish(int64_t item,
                                         const Image* images_of) const {
    const int pooled = shape().pooled, convolved = shape().convolved;
    const int filters = min(problem().filters - first_filter_, kOwn.filters());
    const int end = images(item);
#pragma unroll 1
    for (int i = 0; i < end; ++i) {
      float* const out =
          out_ +
          ((first_image(item) + i) * problem().filters + first_filter_) *
              pooled_plane() +
          first_band(item) * pooled;
#pragma unroll 1
      for (int j = threadIdx.x; j < filters * launch_.area();
           j += kConvolvePoolThreads) {
        const int in_group = Divide(j, launch_.area_magic);
        const int window = j - in_group * launch_.area();
        const int band = Divide(window, launch_.pooled_magic);
        const int x = window - band * pooled;
        const float* const from = sums_ + in_group * launch_.pitch() +
                                  (band * launch_.item_images + i) * convolved +
                                  x * kPool;
        // The last window may be narrower.
        const int last = min(kPool, convolved - x * kPool) - 1;
        float largest = from[0];
#pragma unroll
        for (int k = 1; k < kPool; ++k) {
          largest = fmaxf(largest, from[min(k, last)]);
        }
        const Filter filter = known_[in_group];
        const float sum =
            IsCertain(largest, images_of[i], filter)
                ? ScaledBack(largest, images_of[i], filter)
                : Exact(first_image(item) + i, first_filter_ + in_group,
                        first_band(item) * pooled + window);
        out[in_group * pooled_plane() + window] = Finished(sum, filter);
      }
    }
  }

  const uint32_t filters_;
  Column* const columns_;
  float* const sums_;  // [filter of the group][column], by pitch
};

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONVOLVE_POOL_ROWS_CUH_
