// What the kernels of a convolution with max pooling have in common;
// convolve_pool.cu tells the idea. Needs compute capability 8.0.
#ifndef KERNELS_COMPILED_CUDA_CONVOLVE_POOL_CUH_
#define KERNELS_COMPILED_CUDA_CONVOLVE_POOL_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/compiled/cuda/convolve_pool_plan.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/mend.cuh"
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/tanh.cuh"

namespace convlab::cuda {

// The parts of packed filters.
struct PackedConvolvePool {
  ScaledFilter* scaled;  // [padded_filters]
  uint4* vectors;
  float* filters;  // [M, C, K, K]
  float* bias;     // [M]
};

// What is known of an image of an item, and of a filter of the group.
struct ConvolvePoolImage {
  uint32_t most, least;  // of Extent
  int lossy, kept;       // inputs, if some may be lossy
  int exponent;          // of its scale
  int unused[3];
};
struct ConvolvePoolFilter {
  int exponent;
  float bias;
  float least;  // certain sum, for its lossy weights
  int unused;
};

#if __CUDA_ARCH__ >= 800

// What a block of threads knows of its items, and how sums become results.
class ConvolvePoolBlock {
 protected:
  using Image = ConvolvePoolImage;
  using Filter = ConvolvePoolFilter;

  __device__ ConvolvePoolBlock(char* shared, Filter* known,
                               const PackedConvolvePool& packed,
                               const float* in, float* out,
                               const ConvolvePoolLaunch& launch)
      : launch_(launch),
        images_(reinterpret_cast<Image*>(shared + launch.known_at())),
        known_(known),
        floats_(reinterpret_cast<float*>(shared + launch.floats_at())),
        words_(reinterpret_cast<uint2*>(shared + launch.words_at())),
        row_bytes_(shape().row_words * static_cast<int>(sizeof(uint2))),
        group_(static_cast<int>(blockIdx.x) % launch.shape.groups),
        first_filter_(group_ * launch.shape.instance.filters()),
        packed_(packed),
        in_(in),
        out_(out) {}

  __device__ const ConvolvePoolShape& shape() const { return launch_.shape; }
  __device__ const ConvolvePoolProblem& problem() const {
    return shape().problem;
  }
  __device__ int pool() const { return problem().pool.size; }
  __device__ int plane() const { return problem().size * problem().size; }
  __device__ int pooled_plane() const {
    return shape().pooled * shape().pooled;
  }
  __device__ __forceinline__ int64_t first_image(int64_t item) const {
    return launch_.strips == 1 ? item * launch_.item_images
                               : static_cast<uint32_t>(item) / launch_.strips;
  }
  // The last item may have fewer images.
  __device__ __forceinline__ int images(int64_t item) const {
    return static_cast<int>(min(static_cast<int64_t>(launch_.item_images),
                                launch_.images - first_image(item)));
  }
  // The last strip has as many bands as the others, some of them again.
  __device__ __forceinline__ int first_band(int64_t item) const {
    return launch_.strips == 1
               ? 0
               : min(static_cast<int>(static_cast<uint32_t>(item) %
                                      launch_.strips) *
                         launch_.bands,
                     shape().pooled - launch_.bands);
  }

  // The group's filters.
  __device__ __forceinline__ const uint4* vectors() const {
    const ConvolvePoolInstance& instance = shape().instance;
    return packed_.vectors + group_ * instance.steps() * instance.tiles * 32;
  }

  static __device__ __forceinline__ float ScaledBack(float sum,
                                                     const Image& image,
                                                     const Filter& filter) {
    return sum * ScaleBack(image.exponent, ExponentBits(filter.exponent));
  }
  __device__ __forceinline__ float Finished(float sum,
                                            const Filter& filter) const {
    const float value = sum + filter.bias;
    switch (problem().activation) {
      case Activation::kTanh:
        return Tanh(value);
      case Activation::kRelu:
        return Apply<Activation::kRelu>(value);
      case Activation::kNone:
        break;
    }
    return value;
  }

  __device__ __forceinline__ bool IsCertain(float sum, const Image& image,
                                            const Filter& filter) const {
    const float least = LeastCertain(image, filter);
    return least == 0 || fabsf(sum) > 2 * least;
  }

  // The least certain magnitude of a scaled sum; 0 if all are (scaling.h).
  __device__ __forceinline__ float LeastCertain(const Image& image,
                                                const Filter& filter) const {
    if (!CanScaleBack(image.exponent, filter.exponent)) return INFINITY;
    if (image.lossy == 0) return filter.least;
    // docs/numerics.md tells of images that few inputs dominate.
    if (image.lossy / 64 > image.kept) return INFINITY;
    return filter.least + LeastCertainSum(min(image.lossy, shape().weights()));
  }

  // A window's largest sum by the definition; `window` is its place in the
  // image's results. Called, because it is rare and would take registers.
  __device__ __forceinline__ float Exact(int64_t image, int m,
                                         int window) const {
    return LargestExact(
        shape(), in_ + image * shape().image_floats(),
        packed_.filters + static_cast<int64_t>(m) * shape().weights(), window);
  }
  static __device__ __noinline__ float LargestExact(
      const ConvolvePoolShape& shape, const float* image, const float* filter,
      int window) {
    const ConvolvePoolProblem& problem = shape.problem;
    const int pool = problem.pool.size;
    const int y = window / shape.pooled, x = window - y * shape.pooled;
    const int first_row = y * pool, first_column = x * pool;
    MendPlan plan = {};
    plan.C = problem.channels;
    plan.H = plan.W = problem.size;
    plan.K = problem.kernel_size;
    const int end_row = min(first_row + pool, shape.convolved);
    const int end_column = min(first_column + pool, shape.convolved);
    float largest = -INFINITY;
#pragma unroll 1
    for (int h = first_row; h < end_row; ++h) {
#pragma unroll 1
      for (int w = first_column; w < end_column; ++w) {
        const InputsFrom</*kPadded=*/false> under = {
            plan, image + h * problem.size + w, /*row=*/0, /*column=*/0};
        largest = MaxOrNan(ExactSum<1>(plan, under, filter, 0), largest);
      }
    }
    return largest;
  }

  const ConvolvePoolLaunch& launch_;
  Image* const images_;  // [turn][image]
  Filter* const known_;
  float* const floats_;  // the images as they are
  uint2* const words_;   // [image][row][column][pair], high and low halves
  const int row_bytes_;
  const int group_, first_filter_;
  const PackedConvolvePool& packed_;
  const float* const in_;
  float* const out_;
};

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONVOLVE_POOL_CUH_
