// The front of a network as one kernel: from bytes to the pooled result of the
// first convolution. All pointers are to memory that the GPU can read.
#ifndef KERNELS_COMPILED_CUDA_FRONT_H_
#define KERNELS_COMPILED_CUDA_FRONT_H_

#include <cstdint>

#include "kernels/compiled/cuda/front_plan.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {

// Whether the current device has the tensor cores for it.
Error AskFront(bool* runs);
// And the products of warpgroups, as a shape may ask for them.
bool RunsFrontOfWarpgroups();

// Bytes of packed filters.
int64_t PackedFrontBytes(const FrontShape& shape);

// Packs the filters [M, K, K] and the bias [M], which may be null, at a
// multiple of 16 bytes, in the default stream.
Error LaunchPackFront(const FrontShape& shape, const float* filters,
                      const float* bias, void* packed);

// Queues the front of launch.images images [images, size, size] in `stream`;
// `out` is [images, M, pooled, pooled].
Error LaunchFront(const FrontLaunch& launch, const uint8_t* images,
                  const void* packed, float* out, cudaStream_t stream);

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_FRONT_H_
