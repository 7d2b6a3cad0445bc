// Activation and max pooling.
//
// Idea. tanh and ReLU are monotonic, so the maximum of a window's activations
// is the activation of its maximum. Pooling first makes one kernel of two,
// which reads the convolution's output once and computes a quarter of the
// activations.
//
// Cost. fa19's first stage on 10,000 images: 2.09 GB read, 0.52 GB written; as
// two kernels 6.8 GB.
//
// Bound. Device memory. Windows of 2 x 2 and 4 x 4 on images of even width, as
// all networks have them, are read by 8-byte loads, and a thread has four
// windows in flight.
//
// Outcome (H200). fa19's first stage 0.60 ms, 4.37 TB/s, with tanh as with
// ReLU: what the memory gives. fa20's second stage, with windows of 4 x 4, 0.33
// ms and 2.4 TB/s by 4-byte loads.
#include "common/math/rounding.h"
#include "kernels/cuda/activation.cuh"
#include "kernels/layers/cuda/launches.h"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;  // results per thread, kThreads apart

template <Activation kActivation>
__global__ void ActivateKernel(int64_t count, float* values) {
  const int64_t first =
      int64_t{blockIdx.x} * (kThreads * kPerThread) + threadIdx.x;
  float own[kPerThread];
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    if (first + j * kThreads < count) own[j] = values[first + j * kThreads];
  }
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    if (first + j * kThreads < count) {
      values[first + j * kThreads] = Apply<kActivation>(own[j]);
    }
  }
}

// A window of 2 x 2, its corner at a multiple of 8 bytes.
__device__ float HalvingMax(const float* corner, int size) {
  const float2 top = *reinterpret_cast<const float2*>(corner);
  const float2 bottom = *reinterpret_cast<const float2*>(corner + size);
  return MaxOrNan(MaxOrNan(top.x, top.y), MaxOrNan(bottom.x, bottom.y));
}

// A window of 4 x 4 likewise. Halves that lie beyond the image repeat the last
// ones inside.
__device__ float QuarteringMax(const float* image, int size, int h, int w) {
  float largest = -INFINITY;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
      const int y = min(4 * h + i, size - 2), x = min(4 * w + j, size - 2);
      largest = MaxOrNan(HalvingMax(image + y * size + x, size), largest);
    }
  }
  return largest;
}

__device__ float WindowMax(const float* image, int size, MaxPool pool, int h,
                           int w) {
  const int bottom = min(h * pool.stride + pool.size, size);
  const int right = min(w * pool.stride + pool.size, size);
  float largest = -INFINITY;
  for (int y = h * pool.stride; y < bottom; ++y) {
    for (int x = w * pool.stride; x < right; ++x) {
      largest = MaxOrNan(image[y * size + x], largest);
    }
  }
  return largest;
}

// Windows of kWindow x kWindow next to each other, or any for 0.
template <Activation kActivation, int kWindow, bool kBias>
__global__ void PoolMaxKernel(MaxPool pool, int64_t count, int size, int pooled,
                              PlaneBias bias, const float* in, float* out) {
  const int64_t first = int64_t{blockIdx.x} * (kThreads * kPerThread);
  const int last = min(count - first, int64_t{kThreads * kPerThread}) - 1;
  // 64-bit division is slow; once per thread is enough.
  const unsigned area = pooled * pooled;
  const int64_t first_plane = first / area;
  const unsigned offset = first - first_plane * area;
  const unsigned first_channel = kBias ? first_plane % bias.channels : 0;
  // All loads precede the first store, which may alias them for the compiler,
  // and have no branches, so that they are in flight together.
  float largest[kPerThread];
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int own = threadIdx.x + j * kThreads;
    const unsigned i = offset + min(own, last);
    const int h = i % area / pooled;
    const int w = i % area % pooled;
    const float* const image = in + (first_plane + i / area) * size * size;
    largest[j] = kWindow == 2   ? HalvingMax(image + 2 * h * size + 2 * w, size)
                 : kWindow == 4 ? QuarteringMax(image, size, h, w)
                                : WindowMax(image, size, pool, h, w);
    // Rounding is monotonic, so the largest sum is the sum of the largest.
    if (kBias) {
      largest[j] += bias.values[(first_channel + i / area) % bias.channels];
    }
  }
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int own = threadIdx.x + j * kThreads;
    if (own <= last) out[first + own] = Apply<kActivation>(largest[j]);
  }
}

template <Activation kActivation, bool kBias>
Error Pool(const MaxPool& pool, const PlaneBias& bias, int64_t planes,
           int64_t size, const float* in, float* out, cudaStream_t stream) {
  const int64_t pooled = pool.Output(size);
  const int64_t count = planes * pooled * pooled;
  const int64_t blocks = CeilDivide(count, kThreads * kPerThread);
  const bool pairs = pool.size == pool.stride && size % 2 == 0 &&
                     reinterpret_cast<uintptr_t>(in) % sizeof(float2) == 0;
  const auto kernel =
      pairs && pool.size == 2   ? PoolMaxKernel<kActivation, 2, kBias>
      : pairs && pool.size == 4 ? PoolMaxKernel<kActivation, 4, kBias>
                                : PoolMaxKernel<kActivation, 0, kBias>;
  kernel<<<blocks, kThreads, 0, stream>>>(pool, count, size, pooled, bias, in,
                                          out);
  return CheckLaunch("PoolMaxKernel");
}

template <Activation kActivation>
Error Pool(const MaxPool& pool, const PlaneBias& bias, int64_t planes,
           int64_t size, const float* in, float* out, cudaStream_t stream) {
  const auto run = bias.values == nullptr ? Pool<kActivation, false>
                                          : Pool<kActivation, true>;
  return run(pool, bias, planes, size, in, out, stream);
}

}  // namespace

Error LaunchActivate(Activation activation, int64_t count, float* values,
                     cudaStream_t stream) {
  const int64_t blocks = CeilDivide(count, kThreads * kPerThread);
  switch (activation) {
    case Activation::kNone:
      return {};
    case Activation::kTanh:
      ActivateKernel<Activation::kTanh>
          <<<blocks, kThreads, 0, stream>>>(count, values);
      break;
    case Activation::kRelu:
      ActivateKernel<Activation::kRelu>
          <<<blocks, kThreads, 0, stream>>>(count, values);
      break;
  }
  return CheckLaunch("ActivateKernel");
}

Error LaunchPoolMax(const MaxPool& pool, const PlaneBias& bias,
                    Activation activation, int64_t planes, int64_t size,
                    const float* in, float* out, cudaStream_t stream) {
  switch (activation) {
    case Activation::kTanh:
      return Pool<Activation::kTanh>(pool, bias, planes, size, in, out, stream);
    case Activation::kRelu:
      return Pool<Activation::kRelu>(pool, bias, planes, size, in, out, stream);
    default:
      return Pool<Activation::kNone>(pool, bias, planes, size, in, out, stream);
  }
}

}  // namespace convlab::cuda
