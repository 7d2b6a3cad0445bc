// The kernels of tensor_strips and wgmma_strips for images amid zeros that are
// not in memory, in objects of their own. They are others than those for images
// without: one kernel for both would take up to a twentieth longer (fa20-L1 by
// tensor_strips, H200).
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_PADDED_STRIPS_H_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_PADDED_STRIPS_H_

#include "kernels/convolution/cuda/lib/mender.h"
#include "kernels/convolution/cuda/strips/mma_plan.h"
#include "kernels/convolution/cuda/strips/wgmma_plan.h"

namespace convlab::cuda {

// A StripsKernel (tensor_strips.cuh), and a WgmmaStripsKernel.
using StripsFunction = void (*)(const float* x, const char* arranged, Mend mend,
                                float* y, StripsPlan plan);
using WgmmaStripsFunction = void (*)(const float* x, const uint4* arranged,
                                     Mend mend, float* y, WgmmaStripsPlan plan);

// Those of a shape whose plan is padded(), and has an epilogue if it is pooled.
StripsFunction PaddedStripsFunction(int shape, bool pooled);
WgmmaStripsFunction PaddedWgmmaStripsFunction(int shape, bool pooled);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_PADDED_STRIPS_H_
