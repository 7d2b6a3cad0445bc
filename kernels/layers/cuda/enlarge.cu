// Enlarging the images on the device.
//
// Idea. An image is uploaded as 28 x 28 bytes; the network reads 70 x 70 floats
// for fa19, 25 times as much, which are computed here. The arithmetic is that
// of common/dataset/resize.h in integers: every sum is at most 255 (2 *
// enlarged)^2, so it is exact in 32 bits up to 2048 x 2048, and so is the
// quotient.
//
// Shape of the launch. One block per image, one warp per row, so that no thread
// divides to know its place. Which two input rows or columns an output row or
// column mixes, and with which weights, is the same for all: the block computes
// it once, into shared memory.
//
// Bound. Writing the floats: 196 MB for fa19's 10,000 images, 0.05 ms.
//
// Tried (H200): a thread per pixel with integer divisions, three for each,
// 0.17 ms, 1.2 TB/s.
#include "common/math/rounding.h"
#include "kernels/layers/cuda/enlarge.cuh"
#include "kernels/layers/cuda/launches.h"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 256;

template <bool kSmall>
__global__ void EnlargeKernel(const uint8_t* images, int size, int enlarged,
                              float* out) {
  using Enlarging = Interpolation<kSmall>;
  extern __shared__ char shared[];
  auto* const taps = reinterpret_cast<typename Enlarging::Tap*>(shared);
  const Enlarging enlarging(size, enlarged);
  for (int i = threadIdx.x; i < enlarged; i += kThreads) {
    taps[i] = enlarging.TapOf(i);
  }
  __syncthreads();
  const uint8_t* const image = images + int64_t{blockIdx.x} * size * size;
  // The zeros in front are row and column 0.
  const auto pixel = [&](unsigned y, unsigned x) -> unsigned {
    const bool inside = y - 1 < static_cast<unsigned>(size) &&
                        x - 1 < static_cast<unsigned>(size);
    return inside ? image[(y - 1) * size + x - 1] : 0;
  };
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int y = warp; y < enlarged; y += kThreads / 32) {
    float* const row = out + (int64_t{blockIdx.x} * enlarged + y) * enlarged;
    for (int x = lane; x < enlarged; x += 32) {
      row[x] = static_cast<float>(enlarging.Mix(taps[y], taps[x], pixel));
    }
  }
}

__global__ void ConvertKernel(const uint8_t* bytes, int64_t count, float* out) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) out[i] = bytes[i];
}

}  // namespace

Error LaunchEnlarge(const uint8_t* images, int64_t count, int size,
                    int enlarged, float* out, cudaStream_t stream) {
  if (size == enlarged) {
    const int64_t pixels = count * size * size;
    ConvertKernel<<<CeilDivide(pixels, kThreads), kThreads, 0, stream>>>(
        images, pixels, out);
    return CheckLaunch("ConvertKernel");
  }
  const auto kernel =
      enlarged <= kSmallEnlarged ? EnlargeKernel<true> : EnlargeKernel<false>;
  const int shared_bytes = enlarged * sizeof(Interpolation<true>::Tap);
  kernel<<<count, kThreads, shared_bytes, stream>>>(images, size, enlarged,
                                                    out);
  return CheckLaunch("EnlargeKernel");
}

}  // namespace convlab::cuda
