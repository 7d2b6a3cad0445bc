// few_images for images amid zeros, which it loads as they are in memory:
// without a padded copy of them.
#ifndef KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_PADDED_KERNEL_H_
#define KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_PADDED_KERNEL_H_

#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {

// As KernelVariant::make, for a problem and an epilogue that few_images takes;
// x has the images inside of the problem's.
Kernel* MakePaddedFewImages(const Problem& problem, const Epilogue& epilogue,
                            const Inset& inset, Error* error);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_PADDED_KERNEL_H_
