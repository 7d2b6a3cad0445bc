// How long few_images takes for a problem. No CUDA in here.
#ifndef KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_ESTIMATE_H_
#define KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_ESTIMATE_H_

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// For KernelVariant::estimate_ns: nanoseconds of the plan that few_images
// makes, or negative if there is none.
double EstimateFewImagesNs(const Problem& problem, const DeviceLimits& limits);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_ESTIMATE_H_
