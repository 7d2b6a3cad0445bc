// The instances of direct_tiled (direct_tiled.h) for host code outside of
// kernels/.
#ifndef KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_TILED_INSTANCES_H_
#define KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_TILED_INSTANCES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/cuda/direct/direct_tiled.h"

namespace convlab::cuda {

// Both for a valid problem that the instance takes.
absl::StatusOr<std::unique_ptr<Convolution>> MakeDirectTiledConvolution(
    int instance, const Problem& problem);
absl::StatusOr<DirectTiledUsage> FindDirectTiledUsage(int instance,
                                                      const Problem& problem);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_TILED_INSTANCES_H_
