// Device code of whole_image.cu: the kernel for one layer's size. Whole images
// lie in shared memory beside all weights, and each thread computes one item at
// a time: neighbouring outputs of several filters, whose sums are in registers.
#ifndef KERNELS_CONVOLUTION_CUDA_LESSONS_WHOLE_IMAGE_CUH_
#define KERNELS_CONVOLUTION_CUDA_LESSONS_WHOLE_IMAGE_CUH_

#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"

namespace convlab::cuda::whole_image {

// A layer's size: C x S x S inputs and M filters of K x K.
template <int kC, int kS, int kM, int kK>
struct Size {
  static constexpr int C = kC, S = kS, M = kM, K = kK;
};

// An item: so many filters, and so many rows and columns of outputs of each.
template <int kFilters_, int kRows_, int kColumns_>
struct Item {
  static constexpr int kFilters = kFilters_;
  static constexpr int kRows = kRows_, kColumns = kColumns_;
};

// A block of threads, the images that it holds at a time, and the blocks that a
// multiprocessor holds.
template <int kThreads_, int kImages_, int kBlocks_>
struct Block {
  static constexpr int kThreads = kThreads_;
  static constexpr int kImages = kImages_;
  static constexpr int kBlocks = kBlocks_;
};

// How outputs leave a block: each thread stores its own, or the block collects
// the planes of its filters in shared memory and stores them in one piece.
enum class Output { kStored, kCollected };

// A layer and how it is computed.
template <typename Size, typename Item, typename Block,
          Output kOutput = Output::kStored>
struct Layer : Size, Item, Block {
  using Block::kThreads, Block::kImages;
  using Item::kFilters, Item::kRows, Item::kColumns;
  using Size::C, Size::S, Size::M, Size::K;
  static constexpr bool kCollected = kOutput == Output::kCollected;

  // Items side by side in an output plane, below each other, of the plane and
  // of all filters.
  static constexpr int kOut = S - K + 1;
  static constexpr int kColumnItems = kOut / kColumns;
  static constexpr int kRowItems = CeilDivide(kOut, kRows);
  static constexpr int kPlaneItems = kColumnItems * kRowItems;
  static constexpr int kImageItems = kPlaneItems * (M / kFilters);
  // Items that a block computes in one round.
  static constexpr int kRoundItems = kCollected ? kPlaneItems : kThreads;

  // Shared memory: weights, images, the rows that the last items read beyond
  // the last image, and planes of the output.
  static constexpr int kImageFloats = C * S * S;
  static constexpr int kPlanesFloats = kFilters * kOut * kOut;
  static constexpr int kImagesBegin = CeilDivide(M * C * K * K, 4) * 4;
  static constexpr int kPlanesBegin =
      kImagesBegin + kImages * kImageFloats +
      CeilDivide((kRowItems * kRows - kOut) * S, 4) * 4;
  static constexpr int kSharedBytes =
      4 * (kPlanesBegin + (kCollected ? kPlanesFloats : 0));

  static_assert(M % kFilters == 0 && kOut % kColumns == 0, "");
  static_assert(kColumns == 1 || kColumns == 2, "stores of 4 or 8 bytes");
  static_assert(kImageFloats % 4 == 0, "images are copied by 16 bytes");
  static_assert(!kCollected || (kImages == 1 && kPlaneItems <= kThreads &&
                                kOut % kRows == 0 && kPlanesFloats % 4 == 0),
                "");
};

// Loads the weights of one tap for an item's filters, which lie side by side,
// by the widest loads that are aligned.
template <typename L>
__device__ void LoadTap(const float* from, float (&tap)[L::kFilters]) {
  if constexpr (L::M % 4 == 0 && L::kFilters % 4 == 0) {
#pragma unroll
    for (int f = 0; f < L::kFilters; f += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + f);
      tap[f] = four.x;
      tap[f + 1] = four.y;
      tap[f + 2] = four.z;
      tap[f + 3] = four.w;
    }
  } else {
    static_assert(L::M % 2 == 0 && L::kFilters % 2 == 0, "");
#pragma unroll
    for (int f = 0; f < L::kFilters; f += 2) {
      const float2 two = *reinterpret_cast<const float2*>(from + f);
      tap[f] = two.x;
      tap[f + 1] = two.y;
    }
  }
}

// Adds an item's products to its sums. `in` is the input at the item's upper
// left corner, `weights` the first filter's first weight in the order
// [c][q][p][m].
template <typename L>
__device__ void Accumulate(const float* in, const float* weights,
                           float (&sums)[L::kFilters][L::kRows][L::kColumns]) {
  constexpr int S = L::S, K = L::K;
  // These two loops are not unrolled: their body is a few hundred multiply-adds
  // already and must fit the instruction cache.
#pragma unroll 1
  for (int c = 0; c < L::C; ++c) {
#pragma unroll 1
    for (int q = 0; q < K; ++q) {
      float window[L::kRows + K - 1][L::kColumns];
#pragma unroll
      for (int i = 0; i < L::kRows + K - 1; ++i) {
#pragma unroll
        for (int j = 0; j < L::kColumns; ++j) window[i][j] = in[i * S + q + j];
      }
#pragma unroll
      for (int p = 0; p < K; ++p) {
        float tap[L::kFilters];
        LoadTap<L>(weights + (q * K + p) * L::M, tap);
#pragma unroll
        for (int f = 0; f < L::kFilters; ++f) {
#pragma unroll
          for (int i = 0; i < L::kRows; ++i) {
#pragma unroll
            for (int j = 0; j < L::kColumns; ++j) {
              sums[f][i][j] += window[i + p][j] * tap[f];
            }
          }
        }
      }
    }
    in += S * S;
    weights += K * K * L::M;
  }
}

// Stores an item's sums. `to` is the place of the first one, in row h of the
// first filter's plane.
template <typename L>
__device__ void Store(const float (&sums)[L::kFilters][L::kRows][L::kColumns],
                      int h, float* to) {
#pragma unroll
  for (int f = 0; f < L::kFilters; ++f) {
#pragma unroll
    for (int i = 0; i < L::kRows; ++i) {
      if (L::kOut % L::kRows != 0 && h + i >= L::kOut) continue;
      float* const place = to + (f * L::kOut + i) * L::kOut;
      if constexpr (L::kColumns == 2) {
        *reinterpret_cast<float2*>(place) =
            make_float2(sums[f][i][0], sums[f][i][1]);
      } else {
        *place = sums[f][i][0];
      }
    }
  }
}

// Copies the planes that a block collected in shared memory to y. Every thread
// has written its part; `planes` must not be written again before the next
// WaitForPlanes and barrier.
template <typename L>
__device__ void StorePlanes(const float* planes, float* to) {
#if __CUDA_ARCH__ >= 900
  FenceAsyncProxy();
  __syncthreads();
  if (threadIdx.x == 0) {
    BulkStore(to, planes, L::kPlanesFloats * 4);
    CommitBulkStores();
  }
#else
  __syncthreads();
  for (int i = threadIdx.x; i < L::kPlanesFloats / 4; i += L::kThreads) {
    reinterpret_cast<float4*>(to)[i] =
        reinterpret_cast<const float4*>(planes)[i];
  }
#endif
}

// Waits until the copy engine has read all planes.
__device__ __forceinline__ void WaitForPlanes() {
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0) WaitForBulkReads();
#endif
}

// Brings all weights to shared memory, in the order [c][q][p][m].
template <typename L>
__device__ __forceinline__ void LoadWeights(const float* __restrict__ k,
                                            float* weights) {
  constexpr int C = L::C, M = L::M, K = L::K;
  for (int i = threadIdx.x; i < M * C * K * K; i += L::kThreads) {
    const int m = i / (C * K * K);
    const int c = i / (K * K) % C;
    const int p = i / K % K;
    const int q = i % K;
    weights[((c * K + q) * K + p) * M + m] = k[i];
  }
}

// Brings `count` images from the one at `x` on to shared memory.
template <typename L>
__device__ __forceinline__ void LoadImages(const float* __restrict__ x,
                                           int count, float* images) {
  const float4* const from = reinterpret_cast<const float4*>(x);
#pragma unroll 4
  for (int i = threadIdx.x; i < count * (L::kImageFloats / 4);
       i += L::kThreads) {
    reinterpret_cast<float4*>(images)[i] = from[i];
  }
}

template <typename L>
__global__ void __launch_bounds__(L::kThreads, L::kBlocks)
    WholeImageKernel(const float* __restrict__ x, const float* __restrict__ k,
                     float* __restrict__ y, int64_t batch) {
  constexpr int C = L::C, S = L::S, M = L::M;
  extern __shared__ float4 shared[];
  float* const weights = reinterpret_cast<float*>(shared);
  float* const images = weights + L::kImagesBegin;
  float* const planes = weights + L::kPlanesBegin;
  LoadWeights<L>(k, weights);
  for (int64_t first = int64_t{blockIdx.x} * L::kImages; first < batch;
       first += int64_t{gridDim.x} * L::kImages) {
    const int count = min(int64_t{L::kImages}, batch - first);
    __syncthreads();  // the previous images are no longer read
    LoadImages<L>(x + first * L::kImageFloats, count, images);
    __syncthreads();
    for (int begin = 0; begin < count * L::kImageItems;
         begin += L::kRoundItems) {
      const int item = begin + threadIdx.x;
      const int w = item % L::kColumnItems * L::kColumns;
      const int h = item / L::kColumnItems % L::kRowItems * L::kRows;
      const int m = item / L::kPlaneItems % (M / L::kFilters) * L::kFilters;
      const int image = item / L::kImageItems;
      const bool exists = L::kCollected ? threadIdx.x < L::kPlaneItems
                                        : item < count * L::kImageItems;
      float sums[L::kFilters][L::kRows][L::kColumns] = {};
      if (exists) {
        Accumulate<L>(images + (image * C * S + h) * S + w, weights + m, sums);
      }
      if constexpr (L::kCollected) {
        WaitForPlanes();
        __syncthreads();
        if (exists) Store<L>(sums, h, planes + h * L::kOut + w);
        StorePlanes<L>(planes,
                       y + (first * M + begin / L::kPlaneItems * L::kFilters) *
                               L::kOut * L::kOut);
      } else if (exists) {
        Store<L>(sums, h,
                 y + (((first + image) * M + m) * L::kOut + h) * L::kOut + w);
      }
    }
  }
  if constexpr (L::kCollected) WaitForPlanes();
}

}  // namespace convlab::cuda::whole_image

#endif  // KERNELS_CONVOLUTION_CUDA_LESSONS_WHOLE_IMAGE_CUH_
