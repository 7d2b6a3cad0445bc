// few_images for images amid zeros, which it loads as they are in memory:
// without a padded copy of them.
#ifndef KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_PADDED_H_
#define KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_PADDED_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/cuda/few_images/item.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// For a problem and an epilogue that few_images takes; x has the images inside
// of the problem's.
absl::StatusOr<std::unique_ptr<Convolution>> MakePaddedFewImages(
    const Problem& problem, const Epilogue& epilogue, const Inset& inset,
    const Resources& resources);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_PADDED_H_
