// tensor_wgmma for images amid zeros. The kernels are others than
// tensor_wgmma's, which would take a hundredth longer if one kernel did both.
#include "kernels/convolution/cuda/wgmma/padded_kernel.h"
#include "kernels/convolution/cuda/wgmma/wgmma_convolution.cuh"

namespace convlab::cuda {

Kernel* MakePaddedTensorWgmma(const Problem& problem, const Epilogue& epilogue,
                              const Inset& inset, Error* error) {
  return MakePadded<WgmmaConvolution</*kParts=*/2, /*kPadded=*/true>>(
      problem, epilogue, inset, error);
}

}  // namespace convlab::cuda
