// The kernel of a convolution with max pooling; convolve_pool.cu tells the
// idea. Needs the products of warpgroups, which compute capability 9.0 has.
#ifndef KERNELS_COMPILED_CUDA_CONVOLVE_POOL_ROWS_CUH_
#define KERNELS_COMPILED_CUDA_CONVOLVE_POOL_ROWS_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/compiled/cuda/convolve_pool_items.cuh"
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
        pairs_(reinterpret_cast<Pair*>(shared + launch.pairs_at())) {}

  __device__ void Run(char* shared, bool vector) {
    StoreFilters(shared);
    FindPairs();
    ForEach(vector,
            [&](int64_t item, const Image* images) { Multiply(item, images); });
  }

 private:
  static constexpr ConvolvePoolInstance kOwn =
      kConvolvePoolInstances[kInstance];
  static constexpr int kTiles = kOwn.tiles, kSteps = kOwn.steps();
  static constexpr int kPool = kOwn.pool, kSize = kOwn.kernel_size;
  // Steps whose products run at the same time: as many as were fastest.
  static constexpr int kUnderWay = kPool == 2 ? 3 : 2;

  // Two neighbouring columns of a window.
  struct Pair {
    int words;   // where the left one begins in the words, in bytes
    int second;  // how many bytes behind it the right one does; 0: it has none
    int row;     // of the window in the item
    // The image in the item and the window in its bands; negative: none.
    int place;
  };
  static constexpr int kPlaceBits = 16;

  __device__ __forceinline__ void FindPairs() {
    for (int i = threadIdx.x; i < launch_.pairs(); i += kConvolvePoolThreads) {
      const ConvolvePoolPair pair = launch_.PairAt(i);
      const int row = pair.band * kPool;
      // Those that do not exist repeat the first.
      const int words = pair.image * launch_.image_words() +
                        row * shape().row_words + pair.column * shape().pairs;
      const bool second = pair.column + 1 < shape().convolved;
      pairs_[i] = pair.exists
                      ? Pair{8 * words, second ? 8 * shape().pairs : 0, row,
                             pair.image << kPlaceBits |
                                 (pair.band * shape().pooled + pair.window)}
                      : Pair{0, 0, 0, -1};
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

  // The results of 32 pairs at a time. A lane has the sums of both columns of a
  // pair, and so the largest of half a window or a whole one, for four filters.
  __device__ __forceinline__ void Multiply(int64_t item,
                                           const Image* images_of) const {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_row = first_band(item) * kPool;
    const char* const own = reinterpret_cast<const char*>(words_) +
                            lane % 4 * 8 + first_row * row_bytes_;
#pragma unroll 1
    for (int tile = 0; tile < launch_.tiles(); ++tile) {
      const int part = 4 * tile + warp;
      const Pair pair = pairs_[8 * part + lane / 4];
      const char* const windows[2] = {own + pair.words,
                                      own + pair.words + pair.second};
      const int rows = shape().convolved - first_row - pair.row;
      float large[kPool / 2][kRowSteps][16] = {}, small[kPool / 2][16] = {};
      uint32_t high[kUnderWay][4], low[kUnderWay][4];
      Products<0>(windows, high, low, large, small);
      WaitForProducts<0>();
      float largest[kTiles][2];
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
#pragma unroll
        for (int f = 0; f < 2; ++f) {
          largest[j][f] = -INFINITY;
#pragma unroll
          for (int r = 0; r < kPool; ++r) {
            // A band has two rows at least.
            if (r >= 2 && r >= rows) continue;
#pragma unroll
            for (int column = 0; column < 2; ++column) {
              const int sum = r % 2 * 8 + 4 * j + 2 * column + f;
              float all = small[r / 2][sum];
#pragma unroll
              for (int l = 0; l < kRowSteps; ++l) all += large[r / 2][l][sum];
              largest[j][f] = fmaxf(largest[j][f], all);
            }
          }
        }
      }
      if (kPool > 2 && part < launch_.wide_parts()) {
        Finish<true>(item, images_of, pair.place, largest);
      } else {
        Finish<false>(item, images_of, pair.place, largest);
      }
    }
  }
  // The columns that begin so many bytes behind the first filters; the upper
  // word is the same for all.
  __device__ __forceinline__ uint64_t FiltersAt(int bytes) const {
    const uint64_t first = ColumnsAt(filters_);
    return (first >> 32) << 32 | (static_cast<uint32_t>(first) + (bytes >> 4));
  }

  // Large products of each step of a row have sums of their own, so that little
  // is cut off them (docs/numerics.md).
  // Two rows of positions, one below the other, meet all rows of the filters
  // and a row of zeros; of four rows, the lower two begin two rows later.
  template <int kStep>
  __device__ __forceinline__ void Products(
      const char* const (&windows)[2], uint32_t (&high)[kUnderWay][4],
      uint32_t (&low)[kUnderWay][4], float (&large)[kPool / 2][kRowSteps][16],
      float (&small)[kPool / 2][16]) const {
    if constexpr (kStep < (kSize + kPool - 1) * kRowSteps) {
      constexpr int kRow = kStep / kRowSteps, kOfRow = kStep % kRowSteps;
      uint32_t(&h)[4] = high[kStep % kUnderWay];
      uint32_t(&l)[4] = low[kStep % kUnderWay];
      // For the step that read these registers.
      WaitForProducts<kUnderWay - 1>();
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
        const int at = (kOfRow * (kSize + 2) + kSize - p) * kBlockBytes;
        StartProduct(small[q], l, FiltersAt(at));
        StartProduct(large[q][kOfRow], h, FiltersAt(at));
        StartProduct(small[q], h, FiltersAt(at + kPartBytes));
      }
      CommitProducts();
      Products<kStep + 1>(windows, high, low, large, small);
    }
  }

  // What follows the sums. The lanes of a wide window's pairs each finish one
  // of their two tiles.
  template <bool kWide>
  __device__ __forceinline__ void Finish(int64_t item, const Image* images_of,
                                         int place,
                                         float (&largest)[kTiles][2]) const {
    static_assert(kTiles == 2);
    const int lane = threadIdx.x % 32;
    const bool right = lane / 4 % 2 == 1;
    if (kWide) {
#pragma unroll
      for (int f = 0; f < 2; ++f) {
        const float own = right ? largest[1][f] : largest[0][f];
        const float others = right ? largest[0][f] : largest[1][f];
        largest[0][f] = fmaxf(own, __shfl_xor_sync(0xffffffff, others, 4));
      }
    }
    const int in_item = place >> kPlaceBits;
    if (place < 0 || in_item >= images(item)) return;
    const Image image = images_of[in_item];
    const int64_t number = first_image(item) + in_item;
    const int window =
        first_band(item) * shape().pooled + (place & ((1 << kPlaceBits) - 1));
    const int first = lane % 4 * 2 + (kWide && right ? 8 : 0);
    const int filters = problem().filters - first_filter_;
    float* const out =
        out_ +
        (number * problem().filters + first_filter_ + first) * pooled_plane() +
        window;
    uint32_t uncertain = 0;
#pragma unroll
    for (int i = 0; i < (kWide ? 2 : 4); ++i) {
      const int in_group = i / 2 * 8 + i % 2;
      if (first + in_group >= filters) continue;
      const Filter filter = known_[first + in_group];
      const float sum = largest[i / 2][i % 2];
      if (!IsCertain(sum, image, filter)) uncertain |= 1 << i;
      out[in_group * pooled_plane()] =
          Finished(ScaledBack(sum, image, filter), filter);
    }
    // By the definition.
#pragma unroll 1
    for (; uncertain != 0; uncertain &= uncertain - 1) {
      const int i = __ffs(uncertain) - 1;
      const int in_group = i / 2 * 8 + i % 2;
      out[in_group * pooled_plane()] =
          Finished(Exact(number, first_filter_ + first + in_group, window),
                   known_[first + in_group]);
    }
  }

  const uint32_t filters_;
  Pair* const pairs_;
};

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONVOLVE_POOL_ROWS_CUH_
