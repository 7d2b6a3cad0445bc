// tensor_split's kernels for images amid zeros that are not in memory, in an
// object of their own. They are others than those for images without: one
// kernel for both would take up to a twenty-fifth longer (fa18-L2, H200).
#ifndef KERNELS_CONVOLUTION_CUDA_SPLIT_PADDED_SPLIT_H_
#define KERNELS_CONVOLUTION_CUDA_SPLIT_PADDED_SPLIT_H_

#include "kernels/convolution/cuda/lib/mender.h"
#include "kernels/convolution/cuda/split/plan.h"

namespace convlab::cuda {

// A SplitKernel (kernel.cuh).
using SplitFunction = void (*)(const float* x, const char* arranged, Mend mend,
                               float* y, SplitPlan plan);

// That of a shape whose plan is padded().
SplitFunction PaddedSplitFunction(int shape);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_SPLIT_PADDED_SPLIT_H_
