#include "kernels/convolution/cuda/strips/padded_strips.h"
#include "kernels/convolution/cuda/strips/wgmma_functions.cuh"

namespace convlab::cuda {

WgmmaStripsFunction PaddedWgmmaStripsFunction(int shape, bool pooled) {
  return WgmmaStripsFunctionOf</*kPadded=*/true>(shape, pooled);
}

}  // namespace convlab::cuda
