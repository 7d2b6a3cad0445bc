// A convolution's bias: one number for each channel, added to all of its
// pixels.
//
// Idea. A pass over the convolution's output, in place. A thread has four
// values in flight. The one 64-bit division, by which a block finds its first
// plane, is done once; all other indices fit in 32 bits.
//
// Cost. LeNet-5's first convolution on 4,096 images: 77 MB read, and as much
// written.
//
// Bound. Device memory. The convolution's own store, or the pooling behind it,
// could add the bias without any pass.
#include "common/math/rounding.h"
#include "kernels/layers/cuda/launches.h"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;  // values per thread, kThreads apart

__global__ void AddBiasKernel(int64_t count, int channels, unsigned area,
                              const float* bias, float* values) {
  const int64_t first = int64_t{blockIdx.x} * (kThreads * kPerThread);
  const int last = min(count - first, int64_t{kThreads * kPerThread}) - 1;
  const int64_t first_plane = first / area;
  const unsigned offset = first - first_plane * area;
  const unsigned first_channel = first_plane % channels;
  // All loads precede the first store, so that they are in flight together.
  float sums[kPerThread];
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int own = threadIdx.x + j * kThreads;
    const int i = min(own, last);
    const unsigned channel = (first_channel + (offset + i) / area) % channels;
    sums[j] = values[first + i] + bias[channel];
  }
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int own = threadIdx.x + j * kThreads;
    if (own <= last) values[first + own] = sums[j];
  }
}

}  // namespace

Error LaunchAddBias(int64_t batch, int64_t channels, int64_t area,
                    const float* bias, float* values, cudaStream_t stream) {
  const int64_t count = batch * channels * area;
  AddBiasKernel<<<CeilDivide(count, kThreads * kPerThread), kThreads, 0,
                  stream>>>(count, channels, area, bias, values);
  return CheckLaunch("AddBiasKernel");
}

}  // namespace convlab::cuda
