// Every convolution: a product of matrices whose right one is read from the
// image as it is.
//
// Idea. The sums of all filters at all positions are the product of the filters
// [M, taps] with the unrolled inputs [taps, positions], where a tap is a
// (c, p, q) and a position a (b, i, j). Stride, padding and the filter's shape
// only decide which pixel stands where in the right matrix, so that a kernel
// that works this out for each pixel takes every operation.
//
// - A block computes a tile of up to 64 filters at 128 or 256 positions, which
//   may lie in several images. It goes through the taps in slices of 16.
// - A thread loads the inputs of one position: its place in the image is known
//   from the beginning, and where a tap stands from there is in a table of the
//   slice, which 16 threads compute one slice ahead. Outside of the image it
//   takes zero.
// - While a slice is multiplied the next one is on its way to registers, from
//   where it goes to the second half of shared memory.
// - A thread has up to 8 filters at 4 positions. The threads of a warp share
// the
//   filters, whose weights all of them read at once, and have neighbouring
//   positions, so that reading inputs and writing outputs is without conflicts.
//   Tiles of 8 and 16 filters are for operations with few of them.
//
// Change against fused_im2col, which has the same idea. Register tiles, loads
// one slice ahead, and any stride, padding and filter.
//
// Cost. An input is loaded once for each tap that it meets and each tile of
// filters, mostly from the nearest cache. A tile's empty filters and positions
// compute zeros.
//
// Accuracy. Each sum adds its taps by fused multiply-adds in the order c, p, q,
// as the plain loop does, followed by zeros: the contract of class fp32 holds
// as it does for that loop.
//
// Bound. Float32 arithmetic, at best; a tap costs a thread two vectors of
// weights and four inputs from shared memory for 32 products.
#include <cstdint>

#include "kernels/cuda/activation.cuh"
#include "kernels/operation/cuda/launches.h"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kSlice = 16;  // taps
constexpr int kThreadPositions = 4;

// Where a tap's input stands from that of the first tap.
struct Tap {
  int offset, row, column;
};

__device__ __forceinline__ Tap FindTap(const GeneralPlan& plan, int tap) {
  const int c = plan.by_filter.Quotient(tap);
  const int rest = tap - c * (plan.KH * plan.KW);
  const int p = plan.by_filter_row.Quotient(rest);
  const int q = rest - p * plan.KW;
  return {(c * plan.H + p) * plan.W + q, p, q};
}

// A position: its image, and its place in the plane of sums.
struct Position {
  int64_t b;
  int place;
};

// The position i behind one that is `place` behind the beginning of image b.
__device__ __forceinline__ Position FindPosition(const GeneralPlan& plan,
                                                 int64_t b, int place, int i) {
  const int images = plan.by_plane.Quotient(place + i);
  return {b + images, place + i - images * (plan.OH * plan.OW)};
}

template <int kFilters, int kPositions>
__global__ void __launch_bounds__(kThreads, 2)
    GeneralKernel(const float* __restrict__ x, const float* __restrict__ k,
                  const float* __restrict__ bias, float* __restrict__ y,
                  GeneralPlan plan) {
  constexpr int kLanes = kPositions / kThreadPositions;
  constexpr int kThreadFilters = kFilters * kLanes / kThreads;
  constexpr int kInputSteps = kSlice * kPositions / kThreads;
  constexpr int kTapStep = kThreads / kPositions;  // between a thread's inputs
  constexpr int kWeightSteps = (kSlice * kFilters + kThreads - 1) / kThreads;
  // Keeps vectors aligned and spreads the weights of one filter over banks.
  constexpr int kPitch = kFilters + 4;
  __shared__ float inputs[2][kSlice][kPositions];
  __shared__ __align__(16) float weights[2][kSlice][kPitch];
  __shared__ Tap taps[2][kSlice];

  const int t = static_cast<int>(threadIdx.x);
  const int first_filter =
      static_cast<int>(blockIdx.x % plan.filter_tiles) * kFilters;
  const int64_t first =
      static_cast<int64_t>(blockIdx.x / plan.filter_tiles) * kPositions;
  const int plane = plan.OH * plan.OW;
  const int64_t first_image = first / plane;
  const int first_place = static_cast<int>(first - first_image * plane);

  // The position whose inputs this thread loads.
  const int own = t % kPositions;
  const bool own_exists = first + own < plan.sums;
  const Position position = FindPosition(plan, first_image, first_place, own);
  const int i = plan.by_row.Quotient(position.place);
  const int row0 = i * plan.stride_y - plan.top;
  const int column0 =
      (position.place - i * plan.OW) * plan.stride_x - plan.left;
  const int64_t base = position.b * (int64_t{plan.C} * plan.H * plan.W) +
                       int64_t{row0} * plan.W + column0;

  float next_inputs[kInputSteps];
  float next_weights[kWeightSteps];
  const auto fetch = [&](int slice) {
#pragma unroll
    for (int step = 0; step < kInputSteps; ++step) {
      const int s = t / kPositions + step * kTapStep;
      const Tap tap = taps[slice & 1][s];
      const bool exists = own_exists && slice * kSlice + s < plan.taps &&
                          static_cast<unsigned>(row0 + tap.row) <
                              static_cast<unsigned>(plan.H) &&
                          static_cast<unsigned>(column0 + tap.column) <
                              static_cast<unsigned>(plan.W);
      next_inputs[step] = exists ? __ldg(x + (base + tap.offset)) : 0;
    }
#pragma unroll
    for (int step = 0; step < kWeightSteps; ++step) {
      const int e = t + step * kThreads;
      const int tap = slice * kSlice + e % kSlice;
      const int m = first_filter + e / kSlice;
      next_weights[step] =
          e < kSlice * kFilters && tap < plan.taps && m < plan.M
              ? __ldg(k + int64_t{m} * plan.taps + tap)
              : 0;
    }
  };
  const auto store = [&](int slice) {
#pragma unroll
    for (int step = 0; step < kInputSteps; ++step) {
      inputs[slice & 1][t / kPositions + step * kTapStep][own] =
          next_inputs[step];
    }
#pragma unroll
    for (int step = 0; step < kWeightSteps; ++step) {
      const int e = t + step * kThreads;
      if (e < kSlice * kFilters) {
        weights[slice & 1][e % kSlice][e / kSlice] = next_weights[step];
      }
    }
  };
  const auto find_taps = [&](int slice) {
    if (t < kSlice) taps[slice & 1][t] = FindTap(plan, slice * kSlice + t);
  };

  const int slices = (plan.taps + kSlice - 1) / kSlice;
  const int lane = t % kLanes;
  const int filter = t / kLanes * kThreadFilters;
  float sums[kThreadFilters][kThreadPositions] = {};
  find_taps(0);
  __syncthreads();
  fetch(0);
  find_taps(1);
  store(0);
  __syncthreads();
  for (int slice = 0; slice < slices; ++slice) {
    const bool more = slice + 1 < slices;
    if (more) fetch(slice + 1);
#pragma unroll
    for (int s = 0; s < kSlice; ++s) {
      float in[kThreadPositions];
#pragma unroll
      for (int j = 0; j < kThreadPositions; ++j) {
        in[j] = inputs[slice & 1][s][lane + j * kLanes];
      }
#pragma unroll
      for (int f = 0; f < kThreadFilters; ++f) {
        const float weight = weights[slice & 1][s][filter + f];
#pragma unroll
        for (int j = 0; j < kThreadPositions; ++j) {
          sums[f][j] = fmaf(weight, in[j], sums[f][j]);
        }
      }
    }
    // The halves that are written here were last read before the barrier that
    // ended the slice before.
    if (more) store(slice + 1);
    find_taps(slice + 2);
    __syncthreads();
  }

#pragma unroll
  for (int j = 0; j < kThreadPositions; ++j) {
    const int behind = lane + j * kLanes;
    if (first + behind >= plan.sums) continue;
    const Position to = FindPosition(plan, first_image, first_place, behind);
    float* const out = y + to.b * plan.M * plane + to.place;
#pragma unroll
    for (int f = 0; f < kThreadFilters; ++f) {
      const int m = first_filter + filter + f;
      if (m >= plan.M) continue;
      const float value =
          bias == nullptr ? sums[f][j] : sums[f][j] + __ldg(bias + m);
      out[int64_t{m} * plane] = Apply(plan.activation, value);
    }
  }
}

template <int kFilters>
Error Launch(const GeneralPlan& plan, const float* x, const float* k,
             const float* bias, float* y, cudaStream_t stream) {
  GeneralKernel<kFilters, GeneralTilePositions(kFilters)>
      <<<static_cast<unsigned>(plan.blocks), kThreads, 0, stream>>>(x, k, bias,
                                                                    y, plan);
  return CheckLaunch("GeneralKernel");
}

}  // namespace

Error LaunchGeneral(const GeneralPlan& plan, const float* x, const float* k,
                    const float* bias, float* y, cudaStream_t stream) {
  switch (GeneralTileFilters(plan.M)) {
    case 8:
      return Launch<8>(plan, x, k, bias, y, stream);
    case 16:
      return Launch<16>(plan, x, k, bias, y, stream);
    case 32:
      return Launch<32>(plan, x, k, bias, y, stream);
    default:
      return Launch<64>(plan, x, k, bias, y, stream);
  }
}

}  // namespace convlab::cuda
