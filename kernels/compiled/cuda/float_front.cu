// The front of a network for images of floats.
//
// Idea. With one channel and few filters there is little to multiply: LeNet-5's
// first convolution is 0.96 GFLOP for 4,096 images, which multiply-adds in
// float32 take 15 us for. Tensor cores would need every value split into halves
// and most of a product's columns filled with zeros. A thread computes a whole
// window of 2 x 2 outputs for all filters, so that it loads each pixel once for
// up to 24 sums, each weight serves four of them, and pooling is a maximum of
// its own registers. Weights are parameters of the kernel, that is, constant
// operands of the multiply-adds, which are not loaded at all.
//
// Blocks. A block has several images in shared memory and ends with them, so
// many that all blocks together run at the same time: a last round of few
// blocks would take as long as a full one. Each image has a barrier in shared
// memory, so that threads begin with the first while the others are on their
// way.
//
// Cost. LeNet-5, 4,096 images: 16.8 MB read, 19.3 MB written; 600
// multiply-adds for each window of 2 x 2.
//
// Bound. These instructions: they issue in 81 % of the cycles, and 72 % of them
// are multiply-adds (H200).
#include <algorithm>

#include "common/math/rounding.h"
#include "kernels/compiled/cuda/float_front.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/async_copy.cuh"

namespace convlab::cuda {
namespace {

// 196 windows of LeNet-5's images are 49 warps for 8 images, and 7 for each
// warp of a block.
constexpr int kThreads = 224;
constexpr int kBlocks = 4;  // on a multiprocessor
constexpr int kMostImages = 12;
constexpr int kMostSharedBytes = 48 << 10;
constexpr int kFilters = FloatFront::kMostFilters;

struct Sizes {
  int64_t images;
  int size, pooled, filters;
  int block_images;
  uint32_t area_magic, pooled_magic;  // for Divide
};

// Filters beyond the last are zeros.
template <int kSize>
struct Parameters {
  float weights[kFilters][kSize * kSize];
  float bias[kFilters];
};

#if __CUDA_ARCH__ >= 800

// The sums of a window's four outputs: [filter][row and column].
template <int kSize>
__device__ __forceinline__ void Convolve(const float* from, int size,
                                         const Parameters<kSize>& parameters,
                                         float (&sums)[kFilters][4]) {
#pragma unroll
  for (int r = 0; r < kSize + 1; ++r) {
    float row[kSize + 1];
#pragma unroll
    for (int i = 0; i < kSize + 1; i += 2) {
      const float2 v = *reinterpret_cast<const float2*>(from + r * size + i);
      row[i] = v.x;
      row[i + 1] = v.y;
    }
#pragma unroll
    for (int f = 0; f < kFilters; ++f) {
#pragma unroll
      for (int k = 0; k < kSize; ++k) {
#pragma unroll
        for (int dy = 0; dy < 2; ++dy) {
          if (r - dy < 0 || r - dy >= kSize) continue;
          const float weight = parameters.weights[f][(r - dy) * kSize + k];
#pragma unroll
          for (int dx = 0; dx < 2; ++dx) {
            float& sum = sums[f][2 * dy + dx];
            sum = fmaf(weight, row[k + dx], sum);
          }
        }
      }
    }
  }
}

// Loads a block's images, and tells when an image is there.
class Images {
 public:
  __device__ Images(float* shared, uint64_t* barriers, int pixels)
      : shared_(shared), barriers_(SharedAddress(barriers)), pixels_(pixels) {}

  // `vector`: images begin at multiples of 16 bytes.
  __device__ __forceinline__ void Load(const float* from, int count,
                                       bool vector) {
#if __CUDA_ARCH_FEAT_SM90_ALL
    if (threadIdx.x < count) InitBarrier(barriers_ + 8 * threadIdx.x, kThreads);
    __syncthreads();
#endif
#pragma unroll 1
    for (int image = 0; image < count; ++image) {
      float* const to = shared_ + image * pixels_;
      const float* const own = from + image * pixels_;
      if (vector) {
#pragma unroll 4
        for (int i = 4 * threadIdx.x; i < pixels_; i += 4 * kThreads) {
          StartCopy<16>(to + i, own + i, true);
        }
      } else {
#pragma unroll 4
        for (int i = threadIdx.x; i < pixels_; i += kThreads) {
          StartCopy<4>(to + i, own + i, true);
        }
      }
#if __CUDA_ARCH_FEAT_SM90_ALL
      ArriveWhenCopied(barriers_ + 8 * image);
#endif
    }
#if !__CUDA_ARCH_FEAT_SM90_ALL
    CommitCopies();
    WaitForCopies<0>();
    __syncthreads();
#endif
  }

  __device__ __forceinline__ const float* Wait(int image) const {
#if __CUDA_ARCH_FEAT_SM90_ALL
    WaitFor(barriers_ + 8 * image, 0);
#endif
    return shared_ + image * pixels_;
  }

 private:
  float* const shared_;
  const uint32_t barriers_;
  const int pixels_;
};

#endif

// in [image][row][column], out [image][filter][row][column]. `vector`: images
// begin at multiples of 16 bytes.
template <int kSize, Activation kActivation>
__global__ void __launch_bounds__(kThreads, kBlocks)
    FloatFrontKernel(const float* in, float* out, bool vector,
                     const __grid_constant__ Sizes sizes,
                     const __grid_constant__ Parameters<kSize> parameters) {
#if __CUDA_ARCH__ >= 800
  LetNextKernelStart();
  extern __shared__ __align__(16) float float_front_shared[];
  __shared__ uint64_t barriers[kMostImages];
  const int64_t first = int64_t{blockIdx.x} * sizes.block_images;
  const int count =
      static_cast<int>(min(int64_t{sizes.block_images}, sizes.images - first));
  const int pixels = sizes.size * sizes.size;
  Images images(float_front_shared, barriers, pixels);
  images.Load(in + first * pixels, count, vector);
  const int area = sizes.pooled * sizes.pooled;
#pragma unroll 1
  for (int i = threadIdx.x; i < count * area; i += kThreads) {
    const int image = Divide(i, sizes.area_magic), place = i - image * area;
    const int y = Divide(place, sizes.pooled_magic);
    const int x = place - y * sizes.pooled;
    float sums[kFilters][4] = {};
    Convolve(images.Wait(image) + 2 * (y * sizes.size + x), sizes.size,
             parameters, sums);
    float* const to = out + (first + image) * sizes.filters * area + place;
#pragma unroll
    for (int f = 0; f < kFilters; ++f) {
      if (f >= sizes.filters) break;
      const float most = MaxOrNan(MaxOrNan(sums[f][0], sums[f][1]),
                                  MaxOrNan(sums[f][2], sums[f][3]));
      to[f * area] = Apply<kActivation>(most + parameters.bias[f]);
    }
  }
#endif
}

template <int kSize>
Error Launch(const FloatFront& front, const Sizes& sizes, const float* in,
             float* out, cudaStream_t stream) {
  Parameters<kSize> parameters = {};
  for (int f = 0; f < front.filters; ++f) {
    std::copy_n(front.weights + f * kSize * kSize, kSize * kSize,
                parameters.weights[f]);
    parameters.bias[f] = front.bias[f];
  }
  const bool vector = reinterpret_cast<uintptr_t>(in) % 16 == 0;
  const auto kernel = front.activation == Activation::kTanh
                          ? FloatFrontKernel<kSize, Activation::kTanh>
                      : front.activation == Activation::kRelu
                          ? FloatFrontKernel<kSize, Activation::kRelu>
                          : FloatFrontKernel<kSize, Activation::kNone>;
  const int shared = sizes.block_images * front.size * front.size * 4;
  kernel<<<CeilDivide(sizes.images, sizes.block_images), kThreads, shared,
           stream>>>(in, out, vector, sizes, parameters);
  return CheckLaunch("FloatFrontKernel");
}

}  // namespace

bool MakeFloatFront(int size, int filters, int kernel_size, const MaxPool& pool,
                    Activation activation, FloatFront* front) {
  const int convolved = size - kernel_size + 1;
  // With fewer filters much would be computed in vain. Rows are loaded as pairs
  // of floats.
  constexpr int kFewestFilters = 4;
  if (filters < kFewestFilters || filters > kFilters ||
      (kernel_size != 3 && kernel_size != FloatFront::kMostKernel) ||
      size % 2 != 0 || size * size * 4 > kMostSharedBytes || convolved < 2 ||
      pool.size != 2 || pool.stride != 2 ||
      pool.Output(convolved) != convolved / 2) {
    return false;
  }
  *front = {};
  front->size = size;
  front->filters = filters;
  front->kernel_size = kernel_size;
  front->activation = activation;
  front->pooled = convolved / 2;
  return true;
}

bool RunsFloatFront() {
  return RejectWithoutTensorCores(reinterpret_cast<const void*>(
             FloatFrontKernel<5, Activation::kRelu>)) == nullptr;
}

Error LaunchFloatFront(const FloatFront& front, int64_t images, const float* in,
                       float* out, cudaStream_t stream) {
  const int pixels = front.size * front.size;
  const int area = front.pooled * front.pooled;
  Sizes sizes = {images,
                 front.size,
                 front.pooled,
                 front.filters,
                 1,
                 DivisionMagic(area),
                 DivisionMagic(front.pooled)};
  DeviceLimits limits;
  RETURN_IF_FAILED(AskLimits(&limits));
  // The windows that a thread computes one after another, in all rounds of
  // blocks.
  const auto time = [&](int n) {
    return CeilDivide(CeilDivide(images, n),
                      int64_t{kBlocks} * limits.multiprocessors) *
           CeilDivide(n * area, kThreads);
  };
  for (int n = 2; n <= kMostImages && n * pixels * 4 <= kMostSharedBytes; ++n) {
    if (time(n) < time(sizes.block_images)) sizes.block_images = n;
  }
  return front.kernel_size == 3 ? Launch<3>(front, sizes, in, out, stream)
                                : Launch<5>(front, sizes, in, out, stream);
}

}  // namespace convlab::cuda
