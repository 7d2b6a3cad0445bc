// The kernel of padded.h.
#ifndef KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_PADDED_KERNEL_H_
#define KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_PADDED_KERNEL_H_

#include "kernels/convolution/cuda/few_images/item.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {

// For a problem that few_images takes, and an image inside of the problem's, or
// all of it. Its runs overlap with the kernel before them.
// Never null; the caller deletes it. On failure `error` is set.
Kernel* MakePaddedKernel(const Problem& problem, const Epilogue& epilogue,
                         const Inset& inset, Error* error);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_PADDED_KERNEL_H_
