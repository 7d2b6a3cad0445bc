// The front of a network for images of floats.
//
// Idea. With one channel and few filters there is little to multiply: LeNet-5's
// first convolution is 0.96 GFLOP for 4,096 images. Both kernels compute a
// window of 2 x 2 outputs for all filters at once, so that each pixel is loaded
// once for up to 24 sums, and pooling is a maximum of a thread's own registers.
//
// By multiply-adds. A thread computes a window. Weights are parameters of the
// kernel, that is, constant operands of the multiply-adds, which are not loaded
// at all. These instructions take 15 us for LeNet-5's 4,096 images, and the
// others as much again.
//
// By warpgroups (compute capability 9.0). As in front.cu, a window is a row of
// a product, of which each filter has four columns, one for each place in the
// window: 24 columns of 36 pixels, for which 9 products of halves take
// 120 cycles for 64 windows. An image is split into halves where it lies in
// shared memory, a word of high halves and one of low ones in the place of two
// pixels, so that a thread loads both at once. Two windows, one below the
// other, share six of eight rows.
//
// Exactness. Halves have a scale of the image's own. If they do not keep a
// pixel, because it is far smaller than the largest, or is infinite or NaN, the
// image is computed by multiply-adds; so are all, if they do not keep a filter.
// Otherwise a product loses 8 units of 2^-24 of itself at most, and the sum of
// 25 products as much as 25 times 2^-26 of their magnitudes, since the small
// ones come first.
//
// Blocks. A block has several images in shared memory and ends with them, so
// many that all blocks together run at the same time: a last round of few
// blocks would take as long as a full one. Each image has a barrier in shared
// memory, so that threads begin with the first while the others are on their
// way.
//
// Cost. LeNet-5, 4,096 images: 16.8 MB read, 19.3 MB written.
#include <algorithm>
#include <cmath>

#include "common/math/rounding.h"
#include "kernels/compiled/cuda/float_front.cuh"
#include "kernels/compiled/cuda/float_front.h"
#include "kernels/compiled/cuda/float_front_shared.h"
#include "kernels/compiled/cuda/float_front_warpgroups.cuh"
#include "kernels/compiled/cuda/front.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/round_to_half.h"
#include "kernels/convolution/cuda/lib/scaling.h"
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
// The images that have a kernel of their own: LeNet-5's.
constexpr int kUsualImage = 32;

#if __CUDA_ARCH__ >= 800

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
__global__ void __launch_bounds__(kThreads, kBlocks) FloatFrontKernel(
    const float* in, float* out, bool vector,
    const __grid_constant__ FloatFrontSizes sizes,
    const __grid_constant__ FloatFrontParameters<kSize> parameters) {
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
    FinishWindow<kSize, kActivation>(
        images.Wait(image) + 2 * (y * sizes.size + x), sizes, parameters, area,
        out + (first + image) * sizes.filters * area + place);
  }
#endif
}

template <int kSize>
FloatFrontParameters<kSize> ParametersOf(const FloatFront& front) {
  FloatFrontParameters<kSize> parameters = {};
  for (int f = 0; f < front.filters; ++f) {
    std::copy_n(front.weights + f * kSize * kSize, kSize * kSize,
                parameters.weights[f]);
    parameters.bias[f] = front.bias[f];
  }
  return parameters;
}

template <int kSize, Activation kActivation>
Error Launch(const FloatFront& front, const FloatFrontSizes& sizes,
             const float* in, float* out, cudaStream_t stream) {
  const int64_t blocks = CeilDivide(sizes.images, sizes.block_images);
  const auto parameters = ParametersOf<kSize>(front);
  const bool vector = reinterpret_cast<uintptr_t>(in) % 16 == 0;
  const int shared = sizes.block_images * front.size * front.size * 4;
  FloatFrontKernel<kSize, kActivation><<<blocks, kThreads, shared, stream>>>(
      in, out, vector, sizes, parameters);
  return CheckLaunch("FloatFrontKernel");
}

// As the front from bytes by warps packs them (front_plan.h).
FrontShape ShapeOf(const FloatFront& front) {
  FrontShape shape = {};
  shape.problem.filters = front.filters;
  shape.problem.kernel_size = front.kernel_size;
  shape.steps = FloatFrontShared::Steps(front.kernel_size);
  shape.tiles = FloatFrontShared::kTiles;
  shape.groups = 1;
  return shape;
}

template <int kSize, Activation kActivation>
Error LaunchGroups(const FloatFront& front, const FloatFrontSizes& sizes,
                   const float* in, float* out, cudaStream_t stream) {
  const int64_t blocks = CeilDivide(sizes.images, sizes.block_images);
  const auto kernel =
      front.size == kUsualImage
          ? FloatFrontGroupKernel<kSize, kActivation, kUsualImage>
          : FloatFrontGroupKernel<kSize, kActivation, 0>;
  RETURN_IF_FAILED(AllowAllSharedMemory(reinterpret_cast<const void*>(kernel)));
  const int shared =
      FloatFrontShared::Bytes(kSize, front.size, sizes.block_images);
  kernel<<<blocks, kFloatGroupThreads, shared, stream>>>(
      in, static_cast<const uint4*>(front.packed),
      FrontScalesOf(ShapeOf(front), const_cast<void*>(front.packed)), out,
      sizes, ParametersOf<kSize>(front));
  return CheckLaunch("FloatFrontGroupKernel");
}

using Launcher = Error (*)(const FloatFront&, const FloatFrontSizes&,
                           const float*, float*, cudaStream_t);

template <int kSize>
Launcher LauncherOf(Activation activation, bool groups) {
  switch (activation) {
    case Activation::kTanh:
      return groups ? LaunchGroups<kSize, Activation::kTanh>
                    : Launch<kSize, Activation::kTanh>;
    case Activation::kRelu:
      return groups ? LaunchGroups<kSize, Activation::kRelu>
                    : Launch<kSize, Activation::kRelu>;
    default:
      return groups ? LaunchGroups<kSize, Activation::kNone>
                    : Launch<kSize, Activation::kNone>;
  }
}

bool TakesGroups(const FloatFront& front, const float* in) {
  return front.packed != nullptr &&
         front.size * front.size <= kFloatGroupPixels &&
         reinterpret_cast<uintptr_t>(in) % 16 == 0;
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

bool FloatFrontKeepsFilters(const FloatFront& front) {
  const int values = front.kernel_size * front.kernel_size;
  for (int f = 0; f < front.filters; ++f) {
    const float* const own = front.weights + f * values;
    double most = 0;
    for (int i = 0; i < values; ++i) {
      if (!std::isfinite(own[i])) return false;
      most = std::max(most, std::abs(double{own[i]}));
    }
    if (most == 0) continue;
    const int power = std::ilogb(most);
    if (std::abs(power) > kFloatFrontMostPower) return false;
    for (int i = 0; i < values; ++i) {
      const double v = std::ldexp(double{own[i]}, 14 - power);
      const double rest = v - RoundToHalf(v);
      const double lost = rest - RoundToHalf(rest);
      if (v != 0 && (std::abs(v) < kLeastNormal ||
                     std::abs(lost) > kFloatFrontMostLost * std::abs(v))) {
        return false;
      }
    }
  }
  return true;
}

int64_t PackedFloatFrontBytes(const FloatFront& front) {
  return PackedFrontBytes(ShapeOf(front));
}

Error PackFloatFront(const FloatFront& front, const float* filters,
                     const float* bias, void* packed) {
  return LaunchPackFront(ShapeOf(front), filters, bias, packed);
}

Error LaunchFloatFront(const FloatFront& front, int64_t images, const float* in,
                       float* out, cudaStream_t stream) {
  const int pixels = front.size * front.size;
  const int area = front.pooled * front.pooled;
  const int pairs = CeilDivide(front.pooled, 2) * front.pooled;
  FloatFrontSizes sizes = {images,
                           front.size,
                           front.pooled,
                           front.filters,
                           1,
                           DivisionMagic(area),
                           DivisionMagic(front.pooled),
                           DivisionMagic(pairs)};
  const bool groups = TakesGroups(front, in);
  DeviceLimits limits;
  RETURN_IF_FAILED(AskLimits(&limits));
  // What a thread computes one after another, windows or products, in all
  // rounds of blocks.
  const int64_t at_once =
      int64_t{groups ? kFloatGroupBlocks : kBlocks} * limits.multiprocessors;
  const auto time = [&](int n) {
    return CeilDivide(CeilDivide(images, n), at_once) *
           (groups ? CeilDivide(n * pairs, 64 * kFloatGroups)
                   : CeilDivide(n * area, kThreads));
  };
  const int most = groups ? kFloatGroupImages
                          : min(kMostImages, kMostSharedBytes / (pixels * 4));
  for (int n = 2; n <= most; ++n) {
    if (time(n) < time(sizes.block_images)) sizes.block_images = n;
  }
  const Launcher launch = front.kernel_size == 3
                              ? LauncherOf<3>(front.activation, groups)
                              : LauncherOf<5>(front.activation, groups);
  return launch(front, sizes, in, out, stream);
}

}  // namespace convlab::cuda
