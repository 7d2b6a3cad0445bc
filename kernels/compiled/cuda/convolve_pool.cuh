// What the kernels of a convolution with max pooling have in common;
// convolve_pool.cu tells the idea. Needs compute capability 8.0.
#ifndef KERNELS_COMPILED_CUDA_CONVOLVE_POOL_CUH_
#define KERNELS_COMPILED_CUDA_CONVOLVE_POOL_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/compiled/cuda/convolve_pool_plan.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/mend.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/async_copy.cuh"
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

// A block's items: their images, in shared memory as they are and as words of
// halves, and what their results need.
class ConvolvePoolItems {
 protected:
  using Image = ConvolvePoolImage;
  using Filter = ConvolvePoolFilter;

  __device__ ConvolvePoolItems(char* shared, Filter* known,
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

  // Calls multiply(item, images) for the items, one after another, whose words
  // are in shared memory by then. There is a barrier in front of it.
  template <typename Multiply>
  __device__ __forceinline__ void ForEach(bool vector,
                                          const Multiply& multiply) {
    Prepare();
    WaitForKernelBefore();
    int64_t item = blockIdx.x / shape().groups;
    Load(item, vector);
    for (int turn = 0; item < launch_.items;
         item += launch_.blocks, turn = 1 - turn) {
      Image* const images = images_ + turn * launch_.item_images;
      WaitForCopies<0>();
      __syncthreads();
      FindExtents(item, images);
      __syncthreads();
      Convert(item, images);
      // Nobody reads those of the item before any more.
      Forget(images_ + (1 - turn) * launch_.item_images);
      __syncthreads();
      // Nor the floats.
      const int64_t next = item + launch_.blocks;
      if (next < launch_.items) Load(next, vector);
      multiply(item, images);
    }
  }

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
        const float* const under = image + h * problem.size + w;
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

 private:
  // What stays for all items.
  __device__ __forceinline__ void Prepare() {
    const int own = threadIdx.x, filters = shape().instance.filters();
    for (int i = own; i < filters; i += kConvolvePoolThreads) {
      const int m = first_filter_ + i;
      const ScaledFilter scaled = packed_.scaled[m];
      known_[i] = {scaled.exponent, m < problem().filters ? packed_.bias[m] : 0,
                   LeastCertainSum(scaled.lossy), 0};
    }
    Forget(images_);
    Forget(images_ + launch_.item_images);
    const int words =
        launch_.item_images * launch_.image_words() + launch_.padding();
    for (int i = own; i < words; i += kConvolvePoolThreads) {
      words_[i] = make_uint2(0, 0);
    }
  }
  __device__ __forceinline__ void Forget(Image* images) const {
    for (int i = threadIdx.x; i < launch_.item_images;
         i += kConvolvePoolThreads) {
      const Extent none;
      images[i] = {none.most, none.least, 0, 0, 0, {}};
    }
  }

  // Starts to load an item's images.
  __device__ __forceinline__ void Load(int64_t item, bool vector) {
    const float* const from = in_ + first_image(item) * shape().image_floats();
    const int count = images(item) * shape().image_floats();
    if (vector) {
#pragma unroll 4
      for (int i = 4 * threadIdx.x; i < count; i += 4 * kConvolvePoolThreads) {
        StartCopy<16>(floats_ + i, from + i, true);
      }
    } else {
#pragma unroll 4
      for (int i = threadIdx.x; i < count; i += kConvolvePoolThreads) {
        StartCopy<4>(floats_ + i, from + i, true);
      }
    }
    CommitCopies();
  }

  // The largest and the least magnitude of whole images, so that their scales
  // do not depend on the strips.
  __device__ __forceinline__ void FindExtents(int64_t item, Image* images_of) {
    const int count = shape().image_floats(), end = images(item);
    for (int i = 0; i < end; ++i) {
      const float* const from = floats_ + i * count;
      Extent extent;
      if (count % 4 == 0) {
#pragma unroll 4
        for (int j = threadIdx.x; j < count / 4; j += kConvolvePoolThreads) {
          const float4 v = reinterpret_cast<const float4*>(from)[j];
          extent.Add(v.x);
          extent.Add(v.y);
          extent.Add(v.z);
          extent.Add(v.w);
        }
      } else {
        for (int j = threadIdx.x; j < count; j += kConvolvePoolThreads) {
          extent.Add(from[j]);
        }
      }
      extent = extent.OfWarp();
      if (threadIdx.x % 32 == 0) {
        atomicMax(&images_of[i].most, extent.most);
        atomicMin(&images_of[i].least, extent.least);
      }
    }
  }

  // Scales the item's rows and splits them. Images that cannot be scaled become
  // zeros.
  __device__ __forceinline__ void Convert(int64_t item, Image* images_of) {
    const int end = images(item);
#pragma unroll 1
    for (int i = 0; i < end; ++i) {
      Image& image = images_of[i];
      Extent extent;
      extent.most = image.most;
      extent.least = image.least;
      const bool finite = IsFinite(extent.Most());
      const int exponent = !finite              ? kNotScalable
                           : extent.Most() == 0 ? kUsualExponent
                                                : InputExponent(extent.Most());
      if (threadIdx.x == 0) image.exponent = exponent;
      if (!finite) {
        Convert<false, true>(item, i, 0, image);
      } else if (extent.Lossy(exponent)) {
        Convert<true, false>(item, i, PowerOfTwo(exponent), image);
      } else {
        Convert<false, false>(item, i, PowerOfTwo(exponent), image);
      }
    }
  }
  template <bool kLook, bool kZeros>
  __device__ __forceinline__ void Convert(int64_t item, int number, float scale,
                                          Image& image) {
    const int size = problem().size;
    const int first_row = first_band(item) * pool();
    const int rows = min(launch_.bands * pool() + problem().kernel_size - 1,
                         size - first_row);
    const float* const from = floats_ + number * shape().image_floats();
    uint2* const to = words_ + number * launch_.image_words();
    int lossy = 0, kept = 0;
    const auto split = [&](float a, float b) {
      uint2 word = make_uint2(0, 0);
      if (kZeros) return word;
      const float scaled_a = a * scale, scaled_b = b * scale;
      Split(scaled_a, scaled_b, word.x, word.y);
      if (kLook) {
        const bool lossy_a = IsLossy(a, scaled_a);
        const bool lossy_b = IsLossy(b, scaled_b);
        lossy += lossy_a + lossy_b;
        kept += (a != 0 && !lossy_a) + (b != 0 && !lossy_b);
      }
      return word;
    };
    const int begin = first_row * size, end = begin + rows * size;
    const int pairs = shape().pairs;
#pragma unroll 1
    for (int p = 0; p < pairs; ++p) {
      const float* const a = from + 2 * p * plane();
      // A last channel without another one has zeros beside it.
      const bool second = 2 * p + 1 < problem().channels;
      const float* const b = a + (second ? plane() : 0);
#pragma unroll 4
      for (int i = begin + threadIdx.x; i < end; i += kConvolvePoolThreads) {
        to[i * pairs + p] = split(a[i], second ? b[i] : 0);
      }
    }
    if (kLook && lossy > 0) atomicAdd(&image.lossy, lossy);
    if (kLook && kept > 0) atomicAdd(&image.kept, kept);
  }
};

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONVOLVE_POOL_CUH_
