// A few images: everything waits for memory once.
//
// Idea. One image of the course's layers is 0.3 to 10 million multiply-adds,
// which all multiprocessors together do in less than a microsecond. An empty
// kernel takes 2.75 us from event to event, and one that brings a float from
// device memory and back 3.9: so what counts is to start every load at once, on
// all multiprocessors, to be ready when they arrive, and to write the outputs
// soon. A hundred images are the same with more arithmetic.
//
// - A block computes a tile of a few rows for a few filters of one image. A
//   thread computes 4 neighbouring columns of 1 or 2 rows for 4 filters. For a
//   filter row it loads its inputs and the taps by 16 bytes: with 7 taps and
//   one row 10 loads for 112 multiply-adds.
// - Where positions are too few to fill a multiprocessor, the rows of the
//   filters, of all channels, are shared out among slices of a block's threads;
//   their sums meet in shared memory. Where there are many, a thread goes on to
//   further filters (rounds), and begins and copies only once.
// - All copies are asynchronous (cp.async), and a thread works out its place
//   while they are on their way. Filters are transposed by their copies.
//
// Change against the rungs before. whole_image has one block for an image, and
// direct_tiled's blocks stay for many; both leave most of the GPU idle. There
// is no second kernel that arranges the filters, as tensor cores want. And
// sizes are chosen by a model (plan.h), not by a list.
//
// Cost. Tiles share K - 1 rows, and blocks of other filters load the same
// inputs: from the L2 cache, all but once. Products are the definition's, but
// for columns beyond a multiple of 4, and filters.
//
// Bound. One image: latencies, of the launch, of memory and of some hundred
// instructions before the first load and after the last product. A hundred:
// instructions, of which 80 to 91 % are multiply-adds in the inner loop, and
// writing the output.
//
// Measured on one H200, medians in us (of cuDNN's best plan in brackets), with
// one image and a hundred:
//
//                      fa17         fa18         sp19         fa19         fa20
//   1    layer 1  4.5 (6.1)    5.0 (7.7)    4.5 (6.1)    4.7 (6.3)    5.0 (7.8)
//        layer 2               7.5  (31)    5.2  (10)    6.5  (16)    5.8  (14)
//   100  layer 1  9.2  (19)   19.0  (84)    7.1  (27)   14.5  (55)   11.9  (92)
//        layer 2                68  (93)   12.2  (18)     47  (63)     26  (70)
//
// (With a hundred, the second layers of fa18, fa19 and fa20 in a harness of
// their own.) There tensor_strips takes 17, 22, 12, 22 and 16 us for the first
// layers, and tensor_wgmma, which has more to do at a time, 34, 26 and 17 for
// the second ones of fa18, fa19 and fa20.
//
// What the time goes into, in a harness, fa17 with 100 images in tiles, 9.3 us:
// without the stores 9.1, without the products 7.5, with neither 5.4. fa19's
// first layer, 15.1 us: 12.3, 13.2 and 6.1. So stores and products hide each
// other only in part.
//
// A line for one channel. Where a multiprocessor has 512 or more items, a
// thread's pieces of 4 by 4 sums, those of all images stand in one line that is
// cut into equal parts, whatever image and filters they belong to. fa17 with a
// hundred has 144 items in each of an image's 13 groups of filters, 4.5 warps.
// As 500 blocks of 5 warps and 3 rounds (the last of an image has 1) some
// multiprocessors computed 60 items of a warp, where 44 are the mean. Clocks
// read in that kernel: all copies have started after 1,900 cycles, the first
// product follows at 3,000, and the end is at 11,000. With fewer and larger
// blocks the first product comes at 2,000 to 2,300.
//
// Predicted and measured. One image in 5 to 8 us: 4.6 to 7.6. Rows of the
// filter unrolled for one channel, without the loop over parts of the channels:
// fa17 with 100 images 9.5 instead of 10.7, measured 9.0 to 9.4; what was not
// expected, one image went from 4.8 to 4.2, for the loads start sooner. fa17
// with 100 images in 8, as products and stores alone would have it: 9.0 at
// best. The same as a line in 8.5, for fewer rounds and an earlier begin: 9.0
// in a harness, instead of 9.5, and the other first layers 1 to 7 % less; there
// the stores, which take 3 us alone, begin when all warps have an item done.
//
// Tried and left. Four rows for a thread: 1 to 2 % faster for some first layers
// with 64 and 100 images, slower for all others. Rows of 66 floats in stores of
// 16 bytes, with two floats from the neighbouring lane: 8 to 10 % slower with
// 64 images. A loop over channels round the one over their rows in the copies,
// instead of rows counted through: second layers 0.1 to 0.3 us slower with one
// image, and up to 5 % faster with 100, where tensor_wgmma is faster still.
// Filters of any size, in steps of 4 taps, where the size is known: 15 to 40 %
// slower with 100 images. The line with one image: 1 to 7 % slower, for its
// begin takes longer. Its rows of the filter in a loop: 2 to 4 % slower. Its
// filters through registers, not by cp.async: 5 to 13 % slower. One block for a
// multiprocessor: 1 to 2 % slower than two. Prefetches into the L2 cache before
// the copies: no gain with a hundred images.
#include <cuda_pipeline_primitives.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#include "kernels/convolution/cuda/few_images/plan.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"

namespace convlab::cuda {
namespace {

// n / d for the SplitMagic of d.
__device__ __forceinline__ int Divide(uint32_t n, uint32_t magic) {
  return magic == 0 ? n : __umulhi(n, magic);
}

// Starts the copy of the block's filters, of `taps` taps each from `from` on,
// to [group of four][tap][filter].
__device__ __forceinline__ void CopyFilters(const FewImagesPlan& plan,
                                            const float* from, int filters_left,
                                            int taps, int thread, float* to) {
  // Eight taps of each filter are a sector, and four filters side by side
  // whole lines of shared memory.
  const int lane_filter = thread % kFewFilters;
  const int first = thread / kFewFilters;
  const int step = blockDim.x / kFewFilters;
  const int filter_taps = plan.C * plan.K * plan.K;
  from += int64_t{lane_filter} * filter_taps;
  to += lane_filter;
  const int groups = plan.groups_m * plan.rounds;
  for (int m = lane_filter; m < groups * kFewFilters; m += kFewFilters) {
    if (m < filters_left) {
#pragma unroll 1
      for (int tap = first; tap < taps; tap += step) {
        __pipeline_memcpy_async(to + tap * kFewFilters, from + tap, 4);
      }
    }
    from += int64_t{kFewFilters} * filter_taps;
    to += taps * kFewFilters;
  }
}

// Starts the copy of a tile's inputs, from its first one on, to rows of `pitch`
// floats, one channel after another.
template <FewScope kScope, int kFloats>
__device__ __forceinline__ void CopyInputs(const FewImagesPlan& plan,
                                           const float* from, int channels,
                                           int rows_left, int columns_left,
                                           int thread, float* to) {
  const int first = Divide(thread, plan.copy_columns_magic);
  const int column = (thread - first * plan.copy_columns) * kFloats;
  if (first >= plan.copy_rows || column >= columns_left) return;
  const int rows = channels * plan.input_rows;
  const int next_channel = (plan.H - plan.input_rows) * plan.W;
  from += column, to += column;
#pragma unroll 2
  for (int row = first; row < rows; row += plan.copy_rows) {
    const int c = kScope == FewScope::kOneChannel
                      ? 0
                      : Divide(row, plan.input_rows_magic);
    if (row - c * plan.input_rows < rows_left) {
      __pipeline_memcpy_async(to + row * plan.pitch,
                              from + row * plan.W + c * next_channel,
                              4 * kFloats);
    }
  }
}

template <int kRows>
using FewSums = float[kRows][kFewFilters][kFewColumns];

template <int kRows>
__device__ __forceinline__ void Clear(FewSums<kRows>& sums) {
#pragma unroll
  for (int i = 0; i < kRows * kFewFilters * kFewColumns; ++i) {
    (&sums[0][0][0])[i] = 0;
  }
}

// Adds one filter row's products. `in` is the thread's first input of its first
// row, its rows are `row_stride` apart; `filters` has the taps.
template <int kK, int kRows>
__device__ __forceinline__ void MultiplyRow(const float* in, int row_stride,
                                            const float4* filters, int K,
                                            FewSums<kRows>& sums) {
  const int taps = kK > 0 ? kK : K;
  float window[kRows][8];
  const auto load = [&](int at, int column) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 v =
          *reinterpret_cast<const float4*>(in + r * row_stride + column);
      window[r][at] = v.x, window[r][at + 1] = v.y;
      window[r][at + 2] = v.z, window[r][at + 3] = v.w;
    }
  };
  load(0, 0);
#pragma unroll(kK > 0 ? kK : 1)
  for (int q = 0; q < taps; q += 4) {
    load(4, q + 4);
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      if (q + t >= taps) break;
      const float4 four = filters[q + t];
      const float tap[kFewFilters] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int m = 0; m < kFewFilters; ++m) {
#pragma unroll
          for (int j = 0; j < kFewColumns; ++j) {
            sums[r][m][j] += window[r][t + j] * tap[m];
          }
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int j = 0; j < 4; ++j) window[r][j] = window[r][j + 4];
    }
  }
}

// Stores what of a thread's sums is in the output.
template <typename Vector, int kRows, typename Plan>
__device__ __forceinline__ void StoreSums(const Plan& plan,
                                          const FewSums<kRows>& sums,
                                          int filters_left, int rows_left,
                                          int columns_left, float* to) {
  constexpr int kFloats = sizeof(Vector) / sizeof(float);
#pragma unroll
  for (int m = 0; m < kFewFilters; ++m) {
    if (m >= filters_left) return;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r * plan.groups_y >= rows_left) continue;
      float* const row = to + r * plan.groups_y * plan.W_out;
#pragma unroll
      for (int j = 0; j < kFewColumns; j += kFloats) {
        if (j >= columns_left) continue;
        Vector vector;
#pragma unroll
        for (int i = 0; i < kFloats; ++i) {
          reinterpret_cast<float*>(&vector)[i] = sums[r][m][j + i];
        }
        *reinterpret_cast<Vector*>(row + j) = vector;
      }
    }
    to += plan.H_out * plan.W_out;
  }
}

// Shared memory: filters, inputs, and the sums of all slices. kK is 0 where the
// filter's size is not known.
template <FewScope kScope, int kK, int kRows>
__global__ void __launch_bounds__(kFewMostThreads[kRows - 1], 2)
    FewImagesKernel(const float* __restrict__ x, const float* __restrict__ k,
                    float* __restrict__ y,
                    const __grid_constant__ FewImagesPlan plan) {
  constexpr bool kOneChannel = kScope == FewScope::kOneChannel;
  extern __shared__ float4 shared[];
  float* const filters = reinterpret_cast<float*>(shared);
  float* const inputs = filters + plan.filter_floats;
  float4* const stage = shared + (plan.filter_floats + plan.input_floats) / 4;
  const int K = kK > 0 ? kK : plan.K;
  const int C = kOneChannel ? 1 : plan.C;
  const int slices = kOneChannel ? 1 : plan.slices;
  const int tile_y = plan.tiles_x == 1 ? blockIdx.y : blockIdx.y / plan.tiles_x;
  const int h0 = tile_y * plan.tile_rows;
  const int w0 = (blockIdx.y - tile_y * plan.tiles_x) * plan.tile_columns;
  const int m0 = blockIdx.z * plan.block_filters;
  const int thread = threadIdx.x;
  const int area = plan.H_out * plan.W_out;
  float* const block_to = y + (int64_t{blockIdx.x} * plan.M + m0) * area +
                          int64_t{h0} * plan.W_out + w0;

  FewSums<kRows> sums = {};
  // A loop only where channels come in parts: it delays the first load.
  constexpr bool kParts = kScope == FewScope::kAnything;
  const int end_channel = kParts ? C : 1;
  const int step = kParts ? plan.channels : 1;
#pragma unroll 1
  for (int c0 = 0; c0 < end_channel; c0 += step) {
    const int channels = kParts ? min(step, C - c0) : C;
    if (c0 > 0) __syncthreads();  // the channels before are no longer read
    const float* const from =
        x + (int64_t{blockIdx.x} * C + c0) * (plan.H * plan.W) +
        int64_t{h0} * plan.W + w0;
    const auto copy_inputs = [&](auto floats) {
      CopyInputs<kScope, decltype(floats)::value>(
          plan, from, channels, plan.H - h0, plan.W - w0, thread, inputs);
    };
    if (plan.copy_floats == 4) {
      copy_inputs(std::integral_constant<int, 4>());
    } else if (plan.copy_floats == 2) {
      copy_inputs(std::integral_constant<int, 2>());
    } else {
      copy_inputs(std::integral_constant<int, 1>());
    }
    CopyFilters(plan, k + (int64_t{m0} * C + c0) * (K * K), plan.M - m0,
                channels * K * K, thread, filters);
    __pipeline_commit();

    // All that can be worked out before the memory answers.
    const int y_and_layer = Divide(thread, plan.groups_x_magic);
    const int column = (thread - y_and_layer * plan.groups_x) * kFewColumns;
    const int layer = Divide(y_and_layer, plan.groups_y_magic);
    const int row = y_and_layer - layer * plan.groups_y;
    const int slice = kOneChannel ? 0 : Divide(layer, plan.groups_m_magic);
    const int m = (layer - slice * plan.groups_m) * kFewFilters;
    const int first_row = kOneChannel ? 0 : slice * plan.slice_rows;
    const int filter_rows = min(plan.slice_rows, channels * K - first_row);
    const int first_channel = first_row / K;
    const int first_p = first_row - first_channel * K;
    const float* const first_in = inputs + first_channel * plan.plane() +
                                  (first_p + row) * plan.pitch + column;
    const float4* taps = reinterpret_cast<const float4*>(filters) +
                         m / kFewFilters * channels * (K * K) + first_row * K;
    const int row_stride = plan.groups_y * plan.pitch;
    const int next_channel = plan.plane() - K * plan.pitch;
    // None for a thread that only copies.
    int filters_left = thread < plan.threads ? plan.M - m0 - m : 0;
    float* to = block_to + m * area + row * plan.W_out + column;

    __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll 1
    for (int round = 0; round < plan.rounds && filters_left > 0; ++round) {
      const float* in = first_in;
      const float4* row_taps = taps;
      const auto multiply_row = [&] {
        MultiplyRow<kK, kRows>(in, row_stride, row_taps, K, sums);
        row_taps += K, in += plan.pitch;
      };
      if constexpr (kOneChannel) {
#pragma unroll
        for (int p = 0; p < kK; ++p) multiply_row();
      } else {
        for (int p = first_p, left = filter_rows; left > 0; p = 0) {
          const int end = min(K, p + left);
          left -= end - p;
#pragma unroll 1
          for (; p < end; ++p) multiply_row();
          in += next_channel;
        }
      }
      if (c0 + channels < C) break;  // there is one round then
      if (slices > 1) {
        float4* place =
            stage +
            (layer * kFewFilters * plan.tile_rows + row) * plan.groups_x +
            column / kFewColumns;
#pragma unroll
        for (int f = 0; f < kFewFilters; ++f) {
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            *place = make_float4(sums[r][f][0], sums[r][f][1], sums[r][f][2],
                                 sums[r][f][3]);
            place += plan.groups_y * plan.groups_x;
          }
        }
        break;
      }
      const auto store = [&](auto vector) {
        StoreSums<decltype(vector), kRows>(plan, sums, filters_left,
                                           plan.H_out - h0 - row,
                                           plan.W_out - w0 - column, to);
      };
      if (plan.store_floats == 4) {
        store(float4());
      } else if (plan.store_floats == 2) {
        store(float2());
      } else {
        store(float());
      }
      Clear<kRows>(sums);
      taps += plan.groups_m * channels * (K * K);
      filters_left -= plan.groups_m * kFewFilters;
      to += int64_t{plan.groups_m} * kFewFilters * area;
    }
  }
  if (slices == 1) return;

  __syncthreads();
  const int of_slice =
      plan.groups_m * kFewFilters * plan.tile_rows * plan.tile_columns;
#pragma unroll 1
  for (int i = thread; i < of_slice; i += blockDim.x) {
    const float* term = reinterpret_cast<const float*>(stage) + i;
    float sum = 0;
#pragma unroll 8
    for (int s = 0; s < slices; ++s, term += of_slice) sum += *term;
    const int m_and_row = Divide(i, plan.tile_columns_magic);
    const int column = i - m_and_row * plan.tile_columns;
    const int m = Divide(m_and_row, plan.tile_rows_magic);
    const int row = m_and_row - m * plan.tile_rows;
    if (m0 + m < plan.M && h0 + row < plan.H_out && w0 + column < plan.W_out) {
      block_to[m * area + row * plan.W_out + column] = sum;
    }
  }
}

// Starts the copy of pieces of `tiles` tiles, which begin with the tile_y-th
// one of the image `from`.
template <int kFloats>
__device__ __forceinline__ void CopyTiles(const LinePlan& plan,
                                          const float* from, int tile_y,
                                          int tiles, float* to) {
  const int vectors = tiles * plan.input_rows * plan.copy_columns;
#pragma unroll 1
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    const int row = Divide(i, plan.copy_columns_magic);
    const int column = (i - row * plan.copy_columns) * kFloats;
    const int tile = Divide(row, plan.input_rows_magic);
    const int image = Divide(tile_y + tile, plan.tiles_y_magic);
    const int h = (tile_y + tile - image * plan.tiles_y) * plan.groups_y + row -
                  tile * plan.input_rows;
    if (h < plan.H) {
      __pipeline_memcpy_async(to + row * plan.pitch + column,
                              from + (image * plan.H + h) * plan.W + column,
                              4 * kFloats);
    }
  }
}

// Shared memory: filters and inputs.
template <int kK>
__global__ void __launch_bounds__(kLineMostThreads, 2)
    LineKernel(const float* __restrict__ x, const float* __restrict__ k,
               float* __restrict__ y, const __grid_constant__ LinePlan plan) {
  constexpr int kTaps = kK * kK;
  extern __shared__ float4 shared[];
  float* const filters = reinterpret_cast<float*>(shared);
  float* const inputs = filters + plan.filter_floats();
  const int tile_items = plan.tile_items();
  // From here on items count from the first tile's begin.
  const unsigned before = blockIdx.x * plan.block_items;
  const int first_tile = before / tile_items;
  const int first = before - first_tile * tile_items;
  const int end =
      first + min(plan.block_items, static_cast<int>(plan.items - before));
  const int first_image =
      plan.tiles_y == 1 ? first_tile : first_tile / plan.tiles_y;
  const int first_y = first_tile - first_image * plan.tiles_y;

  const int tiles = Divide(end - 1, plan.tile_items_magic) + 1;
  const float* const from = x + int64_t{first_image} * (plan.H * plan.W);
  if (plan.copy_floats == 4) {
    CopyTiles<4>(plan, from, first_y, tiles, inputs);
  } else if (plan.copy_floats == 2) {
    CopyTiles<2>(plan, from, first_y, tiles, inputs);
  } else {
    CopyTiles<1>(plan, from, first_y, tiles, inputs);
  }
  // The groups that the block needs, from its first one on round the tile's
  // end, to [group][tap][filter].
  const int first_group = Divide(first, plan.positions_magic);
  const int groups =
      min(Divide(end - 1, plan.positions_magic) - first_group + 1, plan.groups);
#pragma unroll 1
  for (unsigned i = threadIdx.x; i < groups * (kFewFilters * kTaps);
       i += blockDim.x) {
    const unsigned place = i / kTaps;
    const unsigned tap = i - place * kTaps;
    int m = first_group * kFewFilters + place;
    if (m >= plan.groups * kFewFilters) m -= plan.groups * kFewFilters;
    if (m < plan.M) {
      __pipeline_memcpy_async(
          filters + (place / kFewFilters * kTaps + tap) * kFewFilters +
              place % kFewFilters,
          k + m * kTaps + tap, 4);
    }
  }
  __pipeline_commit();
  const int area = plan.H_out * plan.W_out;
  float* const first_to = y + int64_t{first_image} * plan.M * area;
  __pipeline_wait_prior(0);
  __syncthreads();

#pragma unroll 1
  for (int i = first + threadIdx.x; i < end; i += blockDim.x) {
    const int tile = Divide(i, plan.tile_items_magic);
    const int group_of_all = Divide(i, plan.positions_magic);
    const int position = i - group_of_all * plan.positions;
    const int row = Divide(position, plan.groups_x_magic);
    const int column = (position - row * plan.groups_x) * kFewColumns;
    const int group = group_of_all - tile * plan.groups;
    int place = group - first_group;
    if (place < 0) place += plan.groups;
    const float* const in =
        inputs + tile * plan.plane() + row * plan.pitch + column;
    const float4* const taps =
        reinterpret_cast<const float4*>(filters) + place * kTaps;
    FewSums<1> sums = {};
#pragma unroll
    for (int p = 0; p < kK; ++p) {
      MultiplyRow<kK, 1>(in + p * plan.pitch, 0, taps + p * kK, kK, sums);
    }
    const int image = Divide(first_y + tile, plan.tiles_y_magic);
    const int h = (first_y + tile - image * plan.tiles_y) * plan.groups_y + row;
    const int m = group * kFewFilters;
    float* const to = first_to + (int64_t{image} * plan.M + m) * area +
                      h * plan.W_out + column;
    const auto store = [&](auto vector) {
      StoreSums<decltype(vector), 1>(plan, sums, plan.M - m, plan.H_out - h,
                                     plan.W_out - column, to);
    };
    if (plan.store_floats == 4) {
      store(float4());
    } else if (plan.store_floats == 2) {
      store(float2());
    } else {
      store(float());
    }
  }
}

using FewImagesPointer = void (*)(const float*, const float*, float*,
                                  FewImagesPlan);

template <FewScope kScope, int kK>
FewImagesPointer OfRows(int rows) {
  return rows == 1 ? FewImagesKernel<kScope, kK, 1>
                   : FewImagesKernel<kScope, kK, 2>;
}

// For filters that have kernels of their own.
template <FewScope kScope, size_t... kSizes>
FewImagesPointer OfKernelSize(const FewImagesPlan& plan,
                              std::index_sequence<kSizes...>) {
  FewImagesPointer found = nullptr;
  ((plan.K == kFewKernelSizes[kSizes]
        ? void(found = OfRows<kScope, kFewKernelSizes[kSizes]>(plan.rows))
        : void()),
   ...);
  return found;
}

FewImagesPointer KernelOf(const FewImagesPlan& plan) {
  constexpr auto kSizes =
      std::make_index_sequence<std::size(kFewKernelSizes)>();
  switch (plan.scope) {
    case FewScope::kOneChannel:
      return OfKernelSize<FewScope::kOneChannel>(plan, kSizes);
    case FewScope::kAllChannels:
      return OfKernelSize<FewScope::kAllChannels>(plan, kSizes);
    case FewScope::kAnything:
      break;
  }
  return OfRows<FewScope::kAnything, 0>(plan.rows);
}

using LinePointer = void (*)(const float*, const float*, float*, LinePlan);

template <size_t... kSizes>
LinePointer LineOf(int K, std::index_sequence<kSizes...>) {
  LinePointer found = nullptr;
  ((K == kFewKernelSizes[kSizes]
        ? void(found = LineKernel<kFewKernelSizes[kSizes]>)
        : void()),
   ...);
  return found;
}

LinePointer KernelOf(const LinePlan& plan) {
  return LineOf(plan.K, std::make_index_sequence<std::size(kFewKernelSizes)>());
}

Error AskLimits(FewImagesLimits* limits) {
  DeviceLimits direct;
  RETURN_IF_FAILED(AskLimits(&direct));
  *limits = {direct.multiprocessors, direct.shared_per_block,
             direct.shared_per_multiprocessor};
  return {};
}

class FewImages : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    FewImagesLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    is_line_ = MakeLinePlan(problem_, limits, &line_plan_);
    if (is_line_) {
      return AllowAllSharedMemory(
          reinterpret_cast<const void*>(KernelOf(line_plan_)));
    }
    if (!MakeFewImagesPlan(problem_, limits, &plan_)) {
      return {"FewImages::Prepare", "no tile fits"};
    }
    return AllowAllSharedMemory(reinterpret_cast<const void*>(KernelOf(plan_)));
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    if (is_line_) {
      LinePlan& plan = line_plan_;
      SetLineVectors(x, y, &plan);
      KernelOf(
          plan)<<<plan.blocks(), plan.threads, plan.shared_bytes(), stream>>>(
          x, k, y, plan);
      return CheckLaunch("LineKernel");
    }
    SetFewImagesVectors(x, y, &plan_);
    const dim3 blocks(plan_.batch, plan_.tiles_x * plan_.tiles_y,
                      plan_.blocks_m);
    KernelOf(
        plan_)<<<blocks, plan_.block_threads, plan_.shared_bytes(), stream>>>(
        x, k, y, plan_);
    return CheckLaunch("FewImagesKernel");
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason = RejectHugeImages(problem)) return reason;
    if (problem.batch > kMaxGridX) return kTooManyBlocks;
    FewImagesLimits limits;
    // A device that cannot be asked fails in Prepare, with the reason.
    if (AskLimits(&limits).failed()) return nullptr;
    FewImagesPlan plan;
    return MakeFewImagesPlan(problem, limits, &plan)
               ? nullptr
               : "four filters of one channel do not fit into shared memory "
                 "beside the rows that they need, or there are too many tiles";
  }

 private:
  bool is_line_ = false;
  LinePlan line_plan_ = {};
  FewImagesPlan plan_ = {};  // otherwise
};

}  // namespace

extern const KernelVariant kFewImages;
const KernelVariant kFewImages = {
    "few_images",
    AccuracyClass::kFp32,
    Track::kSpecialty,
    "For few images: many small blocks whose loads all start at once, where "
    "needed with the input channels shared out among threads.",
    "A few images are computed within microseconds, so that what counts is to "
    "wait for memory once, with all multiprocessors.",
    FewImages::Reject,
    Make<FewImages>,
    EstimateFewImagesNs,
};

}  // namespace convlab::cuda
