// The multipliers of WgmmaKernel where outputs are pooled: warpgroups that
// compute tiles of windows, and store each window's largest sum with bias and
// activation.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_POOLING_MULTIPLIER_CUH_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_POOLING_MULTIPLIER_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/wgmma/block.cuh"
#include "kernels/convolution/cuda/wgmma/filters.cuh"
#include "kernels/convolution/cuda/wgmma/plan.h"
#include "kernels/convolution/cuda/wgmma/tile_product.cuh"
#include "kernels/convolution/epilogue.h"
#include "kernels/cuda/activation.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

// One thread of a warpgroup. A column is one window, or as many as the rows of
// a unit, one below the other. The columns of all of the block's images are
// numbered through, and 32 of them are a tile, so that the last tile of an
// image is a full one, too. Warpgroups take tiles in turn. Each of them waits
// for all slabs and gives all of them back, in order, whether it has a tile
// there or not: so a barrier's parity suffices to tell its phases.
//
// Rows g and g + 8 of a warp's 16 are the left and the right half of a column.
// Sums of both are in the same thread. With two columns of a unit the lanes of
// t and t + 1 have the even ones and the odd ones.
template <int kShape>
class PoolingMultiplier {
 public:
  __device__ __forceinline__ PoolingMultiplier(
      const Block<kShape>& block, const uint4* arranged,
      const ScaledFilter* scaled_filters, const Epilogue& epilogue,
      AllFilters* all_filters, const DoubtfulTiles& doubtful)
      : block_(block),
        plan_(block.plan),
        activation_(epilogue.activation),
        t_(threadIdx.x % 4),
        images_((block.slab_count - static_cast<int>(blockIdx.x) +
                 static_cast<int>(gridDim.x) - 1) /
                static_cast<int>(gridDim.x)),
        all_filters_(all_filters),
        doubtful_(doubtful),
        filters_address_(SharedAddress(block.filters)),
        column_(block.warp / 4 * kWgmmaColumns),
        first_ring_(block.plan.slab_buffers, block.slab_barriers),
        next_ring_(first_ring_) {
    CopyFilters(block, arranged, scaled_filters, epilogue.bias, all_filters);
  }

  __device__ __forceinline__ void Run() {
    for (Pass(); first_ < images_;) {
      // The slabs of this tile.
      const int end =
          min(first_ + Divide(column_ + kWgmmaColumns - 1, plan_.slab_magic),
              images_ - 1);
      while (next_ <= end) TakeSlab();
      const Place place = PlaceOfLane();
      for (int group = 0; group < plan_.groups; ++group) {
        MultiplyTile(place, group, group + 1 == plan_.groups);
      }
    }
  }

 private:
  using C = WgmmaConstants<kShape>;
  using Product = TileProduct<kShape>;
  using Sums = typename Product::Sums;
  static constexpr int kPool = C::kPool > 0 ? C::kPool : 1;
  static constexpr int kWindows = C::kRows / kPool;  // of a column
  // Filters that a thread has sums of, and those whose outputs it stores.
  static constexpr int kFilters = 2 * C::kOctets * C::kShifts;
  static constexpr int kOwnFilters = kFilters / C::kShifts;
  static_assert(C::kPool == 0 ||
                    (C::kRows % C::kPool == 0 && 2 * C::kShifts == C::kPool &&
                     !C::kOwnSlabs && C::kParts == 2),
                "a thread's two units are windows");

  // The lane's column: its image of the batch, its place there, the address of
  // its slab, and the exponent of its scale.
  struct Place {
    int image, band, column;
    uint32_t slab;
    int exponent;
    bool exists;
  };

  // Waits for the next slab.
  __device__ __forceinline__ void TakeSlab() {
    WaitFor(block_.full + 8 * next_ring_.barrier, next_ring_.parity);
    // One of the block's multipliers lists it if it is doubtful.
    if (threadIdx.x == 0) {
      const SlabScale scale = block_.slab_scales[next_ring_.buffer];
      const bool lossy = scale.lossy != 0;
      if (lossy || all_filters_->Doubt(scale.exponent)) {
        const int image = static_cast<int>(blockIdx.x + gridDim.x * next_);
        doubtful_.Add({image, 0, plan_.M, scale.exponent, lossy});
      }
    }
    ++next_;
    next_ring_.Advance();
  }
  // Gives back the slabs in front of column_. At the end these are all.
  __device__ __forceinline__ void Pass() {
    while (first_ < images_ && column_ >= plan_.units) {
      if (next_ == first_) TakeSlab();
      Arrive(block_.empty + 8 * first_ring_.barrier);
      first_ring_.Advance();
      ++first_;
      column_ -= plan_.units;
    }
  }

  // Columns beyond the last are computed as the tile's first one.
  __device__ __forceinline__ Place PlaceOfLane() const {
    int number = column_ + block_.warp % 4 * 8 + block_.lane / 4;
    int slab = Divide(number, plan_.slab_magic);
    Place place;
    place.exists = first_ + slab < images_;
    if (!place.exists) number = column_, slab = 0;
    number -= slab * plan_.units;
    place.band = Divide(number, plan_.units_magic);
    place.column = number - place.band * plan_.band_units;
    place.image = static_cast<int>(blockIdx.x + gridDim.x * (first_ + slab));
    int buffer = first_ring_.buffer + slab;
    if (buffer >= plan_.slab_buffers) buffer -= plan_.slab_buffers;
    place.slab = SharedAddress(block_.SlabBuffer(buffer));
    place.exponent = static_cast<int>(
        LoadShared<0>(SharedAddress(&block_.slab_scales[buffer])));
    return place;
  }

  __device__ __forceinline__ void MultiplyTile(const Place& place, int group,
                                               bool last) {
    uint32_t in[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      // Where the right half has no sums it is computed as the left one.
      const int left = place.column * kPool, own = left + e * C::kShifts;
      in[e] = place.slab +
              4 * (place.band * C::kRows * plan_.pitch +
                   (own < plan_.W_out ? own : left) * (plan_.pixel_halves / 2) +
                   (C::kWide ? 2 * t_ : t_));
    }
    const uint32_t filters = __shfl_sync(
        0xffffffff, filters_address_ + group * C::kParts * plan_.group_bytes,
        0);
    Product product(plan_, in, filters);
    Sums sum;
    {
      Sums step_sum;
      product.RunStepSums(plan_.steps, all_filters_->one_signed, step_sum, sum);
    }
    // Slabs are free before outputs are computed.
    if (last) {
      column_ += C::kMultipliers * kWgmmaColumns;
      Pass();
    }
    Store(place, group, sum);
  }

  // Stores the outputs of a column.
  __device__ __forceinline__ void Store(const Place& place, int group,
                                        const Sums& sums) const {
    // With two columns of a unit two lanes each have the largest of half a
    // window, and each finishes half of the filters.
    const bool upper = C::kShifts == 2 && t_ % 2 == 1;
    const int first = group * C::kGroupFilters + 2 * (t_ / C::kShifts) +
                      (upper ? FilterOfThread<kShape>(kOwnFilters) : 0);
    const int filters = place.exists ? plan_.M - first : 0;
    const int first_window = place.band * kWindows;
    float* out = block_.y +
                 (static_cast<int64_t>(place.image) * plan_.M + first) *
                     plan_.pooled_area +
                 first_window * plan_.band_units + place.column;
#pragma unroll
    for (int window = 0; window < kWindows; ++window, out += plan_.band_units) {
      float largest[kFilters];
      FindLargest(window, plan_.H_out - (first_window + window) * kPool,
                  plan_.W_out - place.column * kPool, sums, largest);
      if constexpr (C::kShifts == 2) {
#pragma unroll
        for (int i = 0; i < kOwnFilters; ++i) {
          const float own = upper ? largest[kOwnFilters + i] : largest[i];
          const float other = upper ? largest[i] : largest[kOwnFilters + i];
          largest[i] = fmaxf(own, __shfl_xor_sync(0xffffffff, other, 1));
        }
      }
      const bool exists =
          (first_window + window) * plan_.band_units < plan_.pooled_area;
      WithActivation(activation_, [&](auto kActivation) {
#pragma unroll
        for (int i = 0; i < kOwnFilters; ++i) {
          const int m = FilterOfThread<kShape>(i);
          const uint32_t exponent =
              LoadShared<0>(SharedAddress(block_.filter_exponents + first + m));
          const float bias = __uint_as_float(
              LoadShared<0>(SharedAddress(block_.bias + first + m)));
          const float value =
              largest[i] * ScaleBack(place.exponent, exponent) + bias;
          StoreIfBelow(m, exists ? filters : 0, out + m * plan_.pooled_area,
                       Apply<kActivation.value>(value));
        }
      });
    }
  }

  // The largest of a window's sums that the thread has: in so many rows and
  // columns, or in all that a window may have.
  __device__ __forceinline__ void FindLargest(
      int window, int rows, int columns, const Sums& sums,
      float (&largest)[kFilters]) const {
#pragma unroll
    for (int i = 0; i < kFilters; ++i) {
      largest[i] = -INFINITY;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const bool exists = e * C::kShifts + t_ % C::kShifts < columns;
#pragma unroll
        for (int of_window = 0; of_window < kPool; ++of_window) {
          const int row = window * kPool + of_window;
          const int at =
              (row % C::kVectorRows * C::kShifts * C::kOctets + i / 2) * 4 +
              e * 2 + i % 2;
          const float sum = sums[row / C::kVectorRows][at];
          if (exists && of_window < rows) largest[i] = fmaxf(largest[i], sum);
        }
      }
    }
  }

  const Block<kShape>& block_;
  const WgmmaPlan& plan_;
  const Activation activation_;
  const int t_;
  const int images_;               // of the block
  AllFilters* const all_filters_;  // in shared memory
  const DoubtfulTiles& doubtful_;
  const uint32_t filters_address_;
  // The next tile's first column, counted from the first one of an image; the
  // image, which is the block's first_-th; and the first whose slab the thread
  // has not waited for.
  int column_;
  int first_ = 0, next_ = 0;
  WgmmaRing first_ring_, next_ring_;  // of these two
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_POOLING_MULTIPLIER_CUH_
