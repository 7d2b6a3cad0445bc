// The items of a convolution with max pooling: their images on the way to words
// of halves in shared memory. Needs compute capability 8.0.
#ifndef KERNELS_COMPILED_CUDA_CONVOLVE_POOL_ITEMS_CUH_
#define KERNELS_COMPILED_CUDA_CONVOLVE_POOL_ITEMS_CUH_

#include <cstdint>

#include "kernels/compiled/cuda/convolve_pool.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/cuda/async_copy.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

class ConvolvePoolItems : protected ConvolvePoolBlock {
 protected:
  using ConvolvePoolBlock::ConvolvePoolBlock;

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
  // do not depend on the strips. Each warp looks at images of its own if there
  // are as many for all.
  __device__ __forceinline__ void FindExtents(int64_t item, Image* images_of) {
    constexpr int kWarps = kConvolvePoolThreads / 32;
    const int count = shape().image_floats(), end = images(item);
    const bool apart = end % kWarps == 0;
    const int own = apart ? threadIdx.x % 32 : threadIdx.x;
    const int threads = apart ? 32 : kConvolvePoolThreads;
#pragma unroll 1
    for (int i = apart ? threadIdx.x / 32 : 0; i < end;
         i += apart ? kWarps : 1) {
      const float* const from = floats_ + i * count;
      Extent extent;
      if (count % 4 == 0) {
#pragma unroll 4
        for (int j = own; j < count / 4; j += threads) {
          const float4 v = reinterpret_cast<const float4*>(from)[j];
          extent.Add(v.x);
          extent.Add(v.y);
          extent.Add(v.z);
          extent.Add(v.w);
        }
      } else {
        for (int j = own; j < count; j += threads) extent.Add(from[j]);
      }
      extent = extent.OfWarp();
      if (threadIdx.x % 32 == 0) {
        atomicMax(&images_of[i].most, extent.most);
        atomicMin(&images_of[i].least, extent.least);
      }
    }
  }

  static __device__ __forceinline__ int ExponentOf(uint32_t most) {
    return !IsFinite(most) ? kNotScalable
           : most == 0     ? kUsualExponent
                           : InputExponent(most);
  }

  // Scales the item's rows and splits them.
  __device__ __forceinline__ void Convert(int64_t item, Image* images_of) {
    const int end = images(item);
    bool plain = true;
    for (int i = threadIdx.x; i < end; i += kConvolvePoolThreads) {
      Extent extent;
      extent.most = images_of[i].most;
      extent.least = images_of[i].least;
      const int exponent = ExponentOf(extent.Most());
      images_of[i].exponent = exponent;
      plain &= IsFinite(extent.Most()) && !extent.Lossy(exponent);
    }
    // Several images together, so that no thread waits for one of them alone.
    if (__syncthreads_and(plain) && end > 1) {
      if (shape().pairs == 2) return ConvertAll<2>(item, images_of);
      if (shape().pairs == 3) return ConvertAll<3>(item, images_of);
    }
#pragma unroll 1
    for (int i = 0; i < end; ++i) {
      CountLossy(i, images_of[i]);
      ConvertOne(item, i, images_of[i].exponent);
    }
  }

  // Counts an image's lossy values, and those that are neither that nor zero;
  // of the whole image, since its strips depend on how many images there are.
  __device__ __forceinline__ void CountLossy(int number, Image& image) const {
    Extent extent;
    extent.least = image.least;
    const int exponent = image.exponent;
    if (exponent == kNotScalable || !extent.Lossy(exponent)) return;
    const float scale = PowerOfTwo(exponent);
    const int count = shape().image_floats();
    const float* const from = floats_ + number * count;
    int lossy = 0, kept = 0;
    for (int i = threadIdx.x; i < count; i += kConvolvePoolThreads) {
      const float v = from[i];
      const bool is_lossy = IsLossy(v, v * scale);
      lossy += is_lossy;
      kept += v != 0 && !is_lossy;
    }
    if (lossy > 0) atomicAdd(&image.lossy, lossy);
    if (kept > 0) atomicAdd(&image.kept, kept);
  }

  // The rows of an image that the item needs.
  __device__ __forceinline__ int first_row(int64_t item) const {
    return first_band(item) * pool();
  }
  __device__ __forceinline__ int rows(int64_t item) const {
    return min(launch_.bands * pool() + problem().kernel_size - 1,
               problem().size - first_row(item));
  }

  // Of finite images without lossy values, whose pixels have kPairs words each.
  template <int kPairs>
  __device__ __forceinline__ void ConvertAll(int64_t item,
                                             const Image* images_of) {
    const int begin = first_row(item) * problem().size;
    const int count = rows(item) * problem().size;
    const int end = images(item), step = plane();
    // A last channel without another one has zeros beside it.
    const bool odd = problem().channels % 2 != 0;
    int image = 0, i = threadIdx.x;
#pragma unroll 1
    while (true) {
#pragma unroll 1
      for (; i >= count; i -= count) ++image;
      if (image >= end) break;
      const float scale = PowerOfTwo(images_of[image].exponent);
      const float* const from =
          floats_ + image * shape().image_floats() + begin + i;
      uint2* const to =
          words_ + image * launch_.image_words() + (begin + i) * kPairs;
      float v[2 * kPairs];
#pragma unroll
      for (int c = 0; c < 2 * kPairs - 1; ++c) v[c] = from[c * step];
      v[2 * kPairs - 1] = odd ? 0 : from[(2 * kPairs - 1) * step];
#pragma unroll
      for (int p = 0; p < kPairs; ++p) {
        Split(v[2 * p] * scale, v[2 * p + 1] * scale, to[p].x, to[p].y);
      }
      i += kConvolvePoolThreads;
    }
  }

  // Of one image, as zeros if it cannot be scaled.
  __device__ __forceinline__ void ConvertOne(int64_t item, int number,
                                             int exponent) const {
    const bool exists = exponent != kNotScalable;
    const float scale = exists ? PowerOfTwo(exponent) : 0;
    const float* const from = floats_ + number * shape().image_floats();
    uint2* const to = words_ + number * launch_.image_words();
    const int begin = first_row(item) * problem().size;
    const int end = begin + rows(item) * problem().size;
    const int pairs = shape().pairs;
#pragma unroll 1
    for (int p = 0; p < pairs; ++p) {
      const float* const a = from + 2 * p * plane();
      const bool second = 2 * p + 1 < problem().channels;
      const float* const b = a + (second ? plane() : 0);
#pragma unroll 4
      for (int i = begin + threadIdx.x; i < end; i += kConvolvePoolThreads) {
        uint2 word;
        Split(exists ? a[i] * scale : 0, exists && second ? b[i] * scale : 0,
              word.x, word.y);
        to[i * pairs + p] = word;
      }
    }
  }
};

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONVOLVE_POOL_ITEMS_CUH_
