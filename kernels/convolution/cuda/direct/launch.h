// The launch of a direct kernel.
#ifndef KERNELS_CONVOLUTION_CUDA_DIRECT_LAUNCH_H_
#define KERNELS_CONVOLUTION_CUDA_DIRECT_LAUNCH_H_

#include <cstdint>

#include "kernels/convolution/cuda/direct/plan.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/tile_steps.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {

struct DirectLaunch {
  int blocks_per_multiprocessor = 0;  // that it can hold
  int64_t blocks = 0;
};

// Lets the kernel have its shared memory, and sets how many blocks it takes.
template <typename Kernel>
Error PrepareDirectLaunch(Kernel kernel, const DeviceLimits& limits,
                          const DirectPlan& plan, DirectLaunch* launch) {
  RETURN_IF_FAILED(AllowAllSharedMemory(reinterpret_cast<const void*>(kernel)));
  RETURN_IF_CUDA_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &launch->blocks_per_multiprocessor, reinterpret_cast<const void*>(kernel),
      plan.block_threads(), plan.shared_bytes));
  launch->blocks = ImagesAtOnce(int64_t{limits.multiprocessors} *
                                    launch->blocks_per_multiprocessor,
                                plan.places(), plan.batch) *
                   plan.places();
  return {};
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_DIRECT_LAUNCH_H_
