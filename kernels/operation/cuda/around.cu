// What stands around a variant where an operation has more than it computes: a
// copy of the input before it, with padding, as floats and with the channels
// first; pooling, bias and activation after it, and y's own format.
//
// Bound. Memory: each value is read and written once. A block takes a part of
// one plane after the other, so that all divisions are of 32 bits. These
// kernels are short, so that launching one while the kernel before still runs,
// which they wait for, is a good part of their time.
#include <algorithm>
#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/cuda/activation.cuh"
#include "kernels/operation/cuda/launches.h"
#include "kernels/operation/cuda/outputs.cuh"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kThreadValues = 4;  // where planes are large enough
constexpr int64_t kMostGroups = 1 << 16, kMostParts = 1 << 10;

// How blocks share planes: `parts` of them one plane, and as many groups of
// them as there are take turns with the planes.
struct Shares {
  int groups, parts;

  int64_t blocks() const { return int64_t{groups} * parts; }
};

// For planes of `count` values.
Shares SharesOf(int64_t planes, int count) {
  const int64_t parts = CeilDivide<int64_t>(count, kThreads * kThreadValues);
  return {static_cast<int>(std::min(planes, kMostGroups)),
          static_cast<int>(std::min(parts, kMostParts))};
}

// A block's first plane, a thread's first value in each, and the distance to
// the thread's next.
struct Share {
  int plane, value, step;
};
__device__ Share ShareOfThread(const Shares& shares) {
  const int plane = static_cast<int>(blockIdx.x) / shares.parts;
  const int part = static_cast<int>(blockIdx.x) - plane * shares.parts;
  return {plane, part * kThreads + static_cast<int>(threadIdx.x),
          shares.parts * kThreads};
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    PadKernel(const T* __restrict__ x, float* __restrict__ padded,
              Padding padding, Shares shares) {
  const Share share = ShareOfThread(shares);
  WaitForKernelBefore();
  // It does not let the next kernel start before it ends: the general kernel's
  // blocks would go where places are free, and leave some multiprocessors with
  // more of them than others.
  const int count = padding.padded_height * padding.padded_width;
  for (int64_t plane = share.plane; plane < padding.planes;
       plane += shares.groups) {
    const int64_t image = plane / padding.channels;
    const T* const from =
        x + (image * padding.in.b +
             (plane - image * padding.channels) * padding.in.c);
    float* const to = padded + plane * count;
    for (int i = share.value; i < count; i += share.step) {
      const int padded_row = i / padding.padded_width;
      const int row = padded_row - padding.top;
      const int column = i - padded_row * padding.padded_width - padding.left;
      const bool inside =
          static_cast<unsigned>(row) < static_cast<unsigned>(padding.height) &&
          static_cast<unsigned>(column) < static_cast<unsigned>(padding.width);
      to[i] = inside ? static_cast<float>(from[int64_t{row} * padding.in.h +
                                               int64_t{column} * padding.in.w])
                     : 0;
    }
  }
}

// The largest value of a window that begins at (top, left).
__device__ float LargestOf(const Finish& finish, const float* plane, int top,
                           int left) {
  const int bottom = min(top + finish.pool.size, finish.height);
  const int right = min(left + finish.pool.size, finish.width);
  float largest = plane[int64_t{top} * finish.width + left];
  for (int row = top; row < bottom; ++row) {
    for (int column = left; column < right; ++column) {
      largest = MaxOrNan(plane[int64_t{row} * finish.width + column], largest);
    }
  }
  return largest;
}

__global__ void __launch_bounds__(kThreads)
    FinishKernel(const float* sums, const void* __restrict__ bias, void* y,
                 Finish finish, Shares shares) {
  const Share share = ShareOfThread(shares);
  WaitForKernelBefore();
  LetNextKernelStart();
  const int count = finish.out_height * finish.out_width;
  for (int64_t plane = share.plane; plane < finish.planes;
       plane += shares.groups) {
    const float* const from =
        sums + plane * (int64_t{finish.height} * finish.width);
    const int64_t image = plane / finish.channels;
    const int m = static_cast<int>(plane - image * finish.channels);
    const float added = bias == nullptr ? 0 : LoadBias(bias, m, finish.halves);
    const int64_t to = image * finish.out.b + int64_t{m} * finish.out.c;
    for (int i = share.value; i < count; i += share.step) {
      const int row = i / finish.out_width;
      const int column = i - row * finish.out_width;
      float value = finish.pool.size == 0
                        ? from[i]
                        : LargestOf(finish, from, row * finish.pool.stride,
                                    column * finish.pool.stride);
      if (bias != nullptr) value += added;
      value = Apply(finish.activation, value);
      const int64_t at =
          to + int64_t{row} * finish.out.h + int64_t{column} * finish.out.w;
      if (finish.halves) {
        StoreOutput(static_cast<__half*>(y) + at, value);
      } else {
        StoreOutput(static_cast<float*>(y) + at, value);
      }
    }
  }
}

}  // namespace

Error LaunchPad(const Padding& padding, const void* x, float* padded,
                bool overlaps, cudaStream_t stream) {
  const int count = padding.padded_height * padding.padded_width;
  const Shares shares = SharesOf(padding.planes, count);
  if (padding.halves) {
    return LaunchOverlapping("PadKernel", PadKernel<__half>, overlaps,
                             shares.blocks(), kThreads, /*shared_bytes=*/0,
                             stream, static_cast<const __half*>(x), padded,
                             padding, shares);
  }
  return LaunchOverlapping("PadKernel", PadKernel<float>, overlaps,
                           shares.blocks(), kThreads, /*shared_bytes=*/0,
                           stream, static_cast<const float*>(x), padded,
                           padding, shares);
}

Error LaunchFinish(const Finish& finish, const float* sums, const void* bias,
                   void* y, bool overlaps, cudaStream_t stream) {
  const int count = finish.out_height * finish.out_width;
  const Shares shares = SharesOf(finish.planes, count);
  return LaunchOverlapping("FinishKernel", FinishKernel, overlaps,
                           shares.blocks(), kThreads, /*shared_bytes=*/0,
                           stream, sums, bias, y, finish, shares);
}

}  // namespace convlab::cuda
