// The front of a network for images of floats, as one kernel: a convolution of
// one channel with few filters, its bias, max pooling of 2 x 2 and its
// activation. (From bytes: front.h.)
#ifndef KERNELS_COMPILED_CUDA_FLOAT_FRONT_H_
#define KERNELS_COMPILED_CUDA_FLOAT_FRONT_H_

#include <cstdint>

#include "common/network/layer.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {

// The sizes of a problem, and its parameters in the host's memory: they go to
// the kernel with each launch.
struct FloatFront {
  static constexpr int kMostFilters = 6, kMostKernel = 5;

  int size;  // of the images, which have one channel
  int filters;
  int kernel_size;
  Activation activation;
  int pooled;  // height and width of the result
  float weights[kMostFilters * kMostKernel * kMostKernel];  // [M][K][K]
  float bias[kMostFilters];
  // The same for tensor cores, in device memory (PackFloatFront); null: the
  // kernel goes without.
  const void* packed;
};

// False if the kernel does not take the sizes, or others are faster; sets all
// but the parameters.
bool MakeFloatFront(int size, int filters, int kernel_size, const MaxPool& pool,
                    Activation activation, FloatFront* front);

// Whether the current device runs it.
bool RunsFloatFront();

// Whether tensor cores compute as exactly as multiply-adds with these filters:
// then they may be packed.
bool FloatFrontKeepsFilters(const FloatFront& front);

// Bytes of packed filters.
int64_t PackedFloatFrontBytes(const FloatFront& front);

// Packs the filters [M, K, K] and the bias [M], all in device memory, at a
// multiple of 16 bytes, in the default stream.
Error PackFloatFront(const FloatFront& front, const float* filters,
                     const float* bias, void* packed);

// Queues it for `in` [images, size, size] in `stream`; `out` is
// [images, M, pooled, pooled].
Error LaunchFloatFront(const FloatFront& front, int64_t images, const float* in,
                       float* out, cudaStream_t stream);

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_FLOAT_FRONT_H_
