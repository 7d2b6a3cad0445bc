// Runs any instance of direct_tiled, by its index in kDirectTiledInstances
// (instances.h), on device 0: for the sweep over all of them.
#ifndef KERNELS_CONVOLUTION_CUDA_DIRECT_INSTANCE_RUNNER_H_
#define KERNELS_CONVOLUTION_CUDA_DIRECT_INSTANCE_RUNNER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/cuda/direct/direct_tiled.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// Whether the instance takes the problem: K is its own, and its tiles fit into
// the device's memories.
absl::StatusOr<bool> DirectTiledInstanceTakes(int instance,
                                              const Problem& problem);

// The instance that the variant runs for the problem; -1 if none takes it.
absl::StatusOr<int> ChosenDirectTiledInstance(const Problem& problem);

// Both for a valid problem that the instance takes.
absl::StatusOr<std::unique_ptr<Convolution>> MakeDirectTiledConvolution(
    int instance, const Problem& problem);
absl::StatusOr<DirectTiledUsage> FindDirectTiledUsage(int instance,
                                                      const Problem& problem);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_DIRECT_INSTANCE_RUNNER_H_
