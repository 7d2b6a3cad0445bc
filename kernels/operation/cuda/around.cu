// What stands around a variant where an operation has more than it computes: a
// copy of the input before it, with padding, as floats and with the channels
// first; pooling, bias and activation after it, and y's own format.
//
// Bound. Memory: each value is read and written once. A block takes a part of
// one plane after the other, so that all divisions are of 32 bits.
#include <algorithm>
#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/cuda/activation.cuh"
#include "kernels/operation/cuda/launches.h"
#include "kernels/operation/cuda/outputs.cuh"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kThreadValues = 4;  // where planes are large enough
constexpr int64_t kMostBlocks = 1 << 16, kMostParts = 1 << 10;

// Blocks for planes of `count` values: x take turns with planes, y share one.
dim3 Blocks(int64_t planes, int count) {
  const int64_t parts = CeilDivide<int64_t>(count, kThreads * kThreadValues);
  return dim3(static_cast<unsigned>(std::min(planes, kMostBlocks)),
              static_cast<unsigned>(std::min(parts, kMostParts)));
}

// The first of a thread's values in a plane, and the distance to the next.
__device__ int FirstValue() {
  return static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
}
__device__ int ValueStep() { return static_cast<int>(gridDim.y) * kThreads; }

template <typename T>
__global__ void __launch_bounds__(kThreads)
    PadKernel(const T* __restrict__ x, float* __restrict__ padded,
              Padding padding) {
  const int count = padding.padded_height * padding.padded_width;
  for (int64_t plane = blockIdx.x; plane < padding.planes; plane += gridDim.x) {
    const int64_t image = plane / padding.channels;
    const T* const from =
        x + (image * padding.in.b +
             (plane - image * padding.channels) * padding.in.c);
    float* const to = padded + plane * count;
    // The loads of all of a thread's values are on their way together.
#pragma unroll kThreadValues
    for (int i = FirstValue(); i < count; i += ValueStep()) {
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
                 Finish finish) {
  const int count = finish.out_height * finish.out_width;
  for (int64_t plane = blockIdx.x; plane < finish.planes; plane += gridDim.x) {
    const float* const from =
        sums + plane * (int64_t{finish.height} * finish.width);
    const int64_t image = plane / finish.channels;
    const int m = static_cast<int>(plane - image * finish.channels);
    const float added = bias == nullptr ? 0 : LoadBias(bias, m, finish.halves);
    const int64_t to = image * finish.out.b + int64_t{m} * finish.out.c;
    for (int i = FirstValue(); i < count; i += ValueStep()) {
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
                cudaStream_t stream) {
  const int count = padding.padded_height * padding.padded_width;
  const dim3 blocks = Blocks(padding.planes, count);
  if (padding.halves) {
    PadKernel<<<blocks, kThreads, 0, stream>>>(static_cast<const __half*>(x),
                                               padded, padding);
  } else {
    PadKernel<<<blocks, kThreads, 0, stream>>>(static_cast<const float*>(x),
                                               padded, padding);
  }
  return CheckLaunch("PadKernel");
}

Error LaunchFinish(const Finish& finish, const float* sums, const void* bias,
                   void* y, cudaStream_t stream) {
  const int count = finish.out_height * finish.out_width;
  FinishKernel<<<Blocks(finish.planes, count), kThreads, 0, stream>>>(
      sums, bias, y, finish);
  return CheckLaunch("FinishKernel");
}

}  // namespace convlab::cuda
