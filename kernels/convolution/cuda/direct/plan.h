// How a direct convolution in shared memory is cut: `direct_tiled` and `half2`
// share it. The kernels on tensor cores, which cut otherwise
// (implicit/tensor_core.cuh), have the walk over inputs and the blocks' number
// from here.
//
// A block keeps the inputs of one tile, a strip of one image, and a block of
// filters in shared memory. Its threads stand threads_x by threads_y by
// threads_m; each computes `filters` filters at `columns` neighbouring columns
// in each of `rows` rows, which are threads_y apart, so that a warp's stores
// are consecutive.
#ifndef KERNELS_CONVOLUTION_CUDA_DIRECT_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_DIRECT_PLAN_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/tile_walk.h"

namespace convlab::cuda {

// What a kernel was compiled for.
struct DirectTile {
  int filters, rows, columns;  // of a thread
  int threads;                 // of a block, at most
  int element_bytes;           // of an input or filter in shared memory
  int vector;                  // inputs in one load from there
  int buffers;                 // of inputs
  bool constant_filters;       // filters are in constant memory
};

struct DirectPlan {
  int C, H, W, M, K, H_out, W_out;
  int threads_x, threads_y, threads_m;
  // Tiles of an image, and blocks of filters. A block of threads keeps its
  // tile's place and its filters, and goes from image to image.
  int strips_x, strips_y, filter_blocks;
  int64_t batch;
  // A tile's inputs: `channels` at a time, each rows x columns, the rows
  // `pitch` elements apart.
  int channels, chunks, rows, columns, pitch;
  TileSteps steps;
  int store_floats;  // of y in one store: 1, 2 or 4
  // Elements of one buffer.
  int input_elements, filter_elements;
  int64_t shared_bytes;

  __host__ __device__ int threads() const {
    return threads_x * threads_y * threads_m;
  }
  // Blocks that one image needs.
  __host__ __device__ int64_t places() const {
    return int64_t{strips_x} * strips_y * filter_blocks;
  }
};

// A thread's place in the grid, the same for all images that it meets.
struct DirectThread {
  int x, y, m;         // in the block
  int tile_h, tile_w;  // the block's first output position
  int filter;          // the thread's first
  int64_t b, b_step;   // its first image, and how far it is to the next
  // What is left of the output from the thread's first element on.
  int filters_left, rows_left, columns_left;

  __device__ DirectThread(const DirectPlan& plan, const DirectTile& tile) {
    x = threadIdx.x % plan.threads_x;
    y = threadIdx.x / plan.threads_x % plan.threads_y;
    m = threadIdx.x / (plan.threads_x * plan.threads_y);
    // The last warp's threads beyond the plan only help to load.
    const bool computes = m < plan.threads_m;
    if (!computes) m = 0;
    const int64_t place = blockIdx.x % plan.places();
    b = blockIdx.x / plan.places();
    b_step = gridDim.x / plan.places();
    const int strip = place / plan.filter_blocks;
    tile_h = strip / plan.strips_x * plan.threads_y * tile.rows;
    tile_w = strip % plan.strips_x * plan.threads_x * tile.columns;
    filter = (place % plan.filter_blocks * plan.threads_m + m) * tile.filters;
    filters_left = computes ? plan.M - filter : 0;
    rows_left = plan.H_out - tile_h - y;
    columns_left = plan.W_out - tile_w - x * tile.columns;
  }

  // The first element of y that the thread computes for image b.
  __device__ float* Output(const DirectPlan& plan, const DirectTile& tile,
                           float* y_tensor) const {
    return y_tensor +
           ((b * plan.M + filter) * plan.H_out + tile_h + y) * plan.W_out +
           tile_w + x * tile.columns;
  }
};

template <int kFloats>
struct FloatVector;
template <>
struct FloatVector<1> {
  using Type = float;
};
template <>
struct FloatVector<2> {
  using Type = float2;
};
template <>
struct FloatVector<4> {
  using Type = float4;
};

template <int kFloats, int kFilters, int kRows, int kColumns>
__device__ __forceinline__ void StoreVectors(
    const DirectPlan& plan, const DirectThread& thread, float* out,
    const float (&sums)[kFilters][kRows][kColumns]) {
  using Vector = typename FloatVector<kFloats>::Type;
#pragma unroll
  for (int m = 0; m < kFilters; ++m) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (m >= thread.filters_left || r * plan.threads_y >= thread.rows_left) {
        continue;
      }
      float* const row = out + int64_t{r} * plan.threads_y * plan.W_out;
#pragma unroll
      for (int i = 0; i < kColumns; i += kFloats) {
        if (i < thread.columns_left) {
          Vector vector;
          float* const floats = reinterpret_cast<float*>(&vector);
#pragma unroll
          for (int j = 0; j < kFloats; ++j) floats[j] = sums[m][r][i + j];
          *reinterpret_cast<Vector*>(row + i) = vector;
        }
      }
    }
    out += int64_t{plan.H_out} * plan.W_out;
  }
}

// Stores a thread's tile, as far as it is in the output, from its first element
// on; in the vectors that the rows' alignment allows.
template <int kFilters, int kRows, int kColumns>
__device__ __forceinline__ void StoreTile(
    const DirectPlan& plan, const DirectThread& thread, float* out,
    const float (&sums)[kFilters][kRows][kColumns]) {
  if constexpr (kColumns % 4 == 0) {
    if (plan.store_floats == 4) {
      StoreVectors<4>(plan, thread, out, sums);
      return;
    }
  }
  if constexpr (kColumns % 2 == 0) {
    if (plan.store_floats >= 2) {
      StoreVectors<2>(plan, thread, out, sums);
      return;
    }
  }
  StoreVectors<1>(plan, thread, out, sums);
}

// Sets how x and y are read and written: vectors of what divides their rows and
// addresses. An input row is copied by up to `most_floats` at a time.
inline void SetVectors(const float* x, const float* y, const DirectTile& tile,
                       int threads, int most_floats, DirectPlan* plan) {
  const auto largest = [](auto fits) { return fits(4) ? 4 : fits(2) ? 2 : 1; };
  plan->store_floats = largest([&](int floats) {
    return plan->W_out % floats == 0 &&
           reinterpret_cast<uintptr_t>(y) % (4 * floats) == 0;
  });
  const int copy_floats = largest([&](int floats) {
    return floats <= most_floats && plan->W % floats == 0 &&
           plan->columns % floats == 0 && plan->pitch % floats == 0 &&
           (plan->strips_x == 1 ||
            plan->threads_x * tile.columns % floats == 0) &&
           reinterpret_cast<uintptr_t>(x) % (4 * floats) == 0;
  });
  plan->steps = MakeTileSteps(threads, copy_floats, plan->rows, plan->columns,
                              plan->W, int64_t{plan->H} * plan->W, plan->pitch,
                              plan->rows * plan->pitch);
}

// A load from shared memory is served 128 bytes at a time, in as many cycles as
// words fall on one of the 32 banks. Returns the most of the first warp's.
inline int BankConflicts(const DirectTile& tile, const DirectPlan& plan,
                         int pitch) {
  const int words = tile.vector * tile.element_bytes / 4;
  if (words == 0) return 1;  // halves: neighbours share a word
  const int lanes = 32 / words;
  int worst = 0;
  for (int phase = 0; phase < words; ++phase) {
    int uses[32] = {};
    for (int lane = phase * lanes; lane < (phase + 1) * lanes; ++lane) {
      const int element = lane / plan.threads_x % plan.threads_y * pitch +
                          lane % plan.threads_x * tile.columns;
      for (int i = 0; i < words; ++i) {
        const int conflicts =
            ++uses[(element * tile.element_bytes / 4 + i) % 32];
        if (conflicts > worst) worst = conflicts;
      }
    }
  }
  return worst;
}

// Cuts the problem; false if not even the smallest tile fits.
inline bool MakeDirectPlan(const DirectTile& tile, const Problem& problem,
                           const DeviceLimits& limits, DirectPlan* plan) {
  plan->C = problem.channels, plan->H = problem.height;
  plan->W = problem.width, plan->M = problem.filters;
  plan->H_out = problem.output_height(), plan->W_out = problem.output_width();
  const int K = plan->K = problem.kernel_size;

  // All filters if they are few, then whole rows, then as many rows as there
  // are threads left; each cut into equal parts.
  constexpr int kMaxThreadsM = 8;
  const int groups_m = CeilDivide(plan->M, tile.filters);
  plan->filter_blocks =
      tile.constant_filters ? 1 : CeilDivide(groups_m, kMaxThreadsM);
  plan->threads_m =
      tile.constant_filters ? 1 : CeilDivide(groups_m, plan->filter_blocks);
  plan->batch = problem.batch;
  const int groups_x = CeilDivide(plan->W_out, tile.columns);
  plan->strips_x = CeilDivide(groups_x, tile.threads / plan->threads_m);
  plan->threads_x = CeilDivide(groups_x, plan->strips_x);
  const int groups_y = CeilDivide(plan->H_out, tile.rows);
  int most_y = tile.threads / (plan->threads_m * plan->threads_x);
  if (most_y > groups_y) most_y = groups_y;

  // Fewer rows if one channel of the tile does not fit.
  for (; most_y >= 1; most_y /= 2) {
    plan->strips_y = CeilDivide(groups_y, most_y);
    plan->threads_y = CeilDivide(groups_y, plan->strips_y);
    plan->rows = plan->threads_y * tile.rows + K - 1;
    plan->columns = plan->threads_x * tile.columns + K - 1;
    if (plan->columns > plan->W) plan->columns = plan->W;
    // Rows that are vectors in memory are copied as such.
    const int step = plan->W % 4 == 0                      ? 4
                     : plan->W % 2 == 0 && tile.vector < 2 ? 2
                                                           : tile.vector;
    const int least = RoundUp(plan->columns, step);
    plan->pitch = least;
    for (int pitch = least; pitch < least + 128 / tile.element_bytes;
         pitch += step) {
      if (BankConflicts(tile, *plan, pitch) <
          BankConflicts(tile, *plan, plan->pitch)) {
        plan->pitch = pitch;
      }
    }
    // As few chunks of channels as let two blocks live on a multiprocessor;
    // if one channel is too much for that, what a block may have.
    const int64_t sizes[] = {limits.shared_per_multiprocessor / 2 - 1024,
                             limits.shared_per_block};
    for (const int64_t size : sizes) {
      for (int channels = plan->C; channels >= 1;) {
        // The last row's last vector may end beyond the row.
        const int64_t inputs =
            int64_t{channels} * plan->rows * plan->pitch + tile.columns + K + 4;
        const int64_t filters =
            tile.constant_filters
                ? 0
                : int64_t{channels} * K * K * plan->threads_m * tile.filters;
        plan->channels = channels;
        plan->chunks = CeilDivide(plan->C, channels);
        plan->shared_bytes = tile.element_bytes *
                             (tile.buffers * ((inputs + 15) / 16 * 16) +
                              (plan->chunks > 1 ? tile.buffers : 1) * filters);
        if (plan->shared_bytes <= size) {
          plan->input_elements = RoundUp(inputs, 16);
          plan->filter_elements = filters;
          return true;
        }
        // The next smaller number of channels that cuts them evenly.
        if (channels == 1) break;
        channels = CeilDivide(plan->C, CeilDivide(plan->C, channels - 1));
      }
    }
  }
  return false;
}

struct DirectLaunch {
  int threads = 0;                    // per block
  int blocks_per_multiprocessor = 0;  // that it can hold
  int64_t blocks = 0;
};

// Lets the kernel have its shared memory, and counts its blocks.
template <typename Kernel>
Error PrepareDirectLaunch(Kernel kernel, const DeviceLimits& limits,
                          const DirectPlan& plan, DirectLaunch* launch) {
  launch->threads = RoundUp(plan.threads(), 32);
  RETURN_IF_FAILED(AllowAllSharedMemory(reinterpret_cast<const void*>(kernel)));
  RETURN_IF_CUDA_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &launch->blocks_per_multiprocessor, reinterpret_cast<const void*>(kernel),
      launch->threads, plan.shared_bytes));
  launch->blocks = ImagesAtOnce(int64_t{limits.multiprocessors} *
                                    launch->blocks_per_multiprocessor,
                                plan.places(), plan.batch) *
                   plan.places();
  return {};
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_DIRECT_PLAN_H_
