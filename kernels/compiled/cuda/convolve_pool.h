// A convolution with its bias, max pooling and activation as one kernel. All
// pointers are to device memory.
#ifndef KERNELS_COMPILED_CUDA_CONVOLVE_POOL_H_
#define KERNELS_COMPILED_CUDA_CONVOLVE_POOL_H_

#include <cstdint>

#include "kernels/compiled/cuda/convolve_pool_plan.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {

// Whether the current device has the products for it.
bool RunsConvolvePool(const ConvolvePoolShape& shape);

// Bytes of packed filters.
int64_t PackedConvolvePoolBytes(const ConvolvePoolShape& shape);

// Packs the filters [M, C, K, K] and the bias [M], which may be null, at a
// multiple of 16 bytes, in the default stream.
Error LaunchPackConvolvePool(const ConvolvePoolShape& shape,
                             const float* filters, const float* bias,
                             void* packed);

// Queues the convolution of `in` [images, C, size, size] in `stream`; `out` is
// [images, M, pooled, pooled].
Error LaunchConvolvePool(const ConvolvePoolLaunch& launch, const float* in,
                         const void* packed, float* out, cudaStream_t stream);

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONVOLVE_POOL_H_
