#include "kernels/convolution/cuda/strips/padded_strips.h"
#include "kernels/convolution/cuda/strips/tensor_strips.cuh"

namespace convlab::cuda {

StripsFunction PaddedStripsFunction(int shape, bool pooled) {
  return StripsFunctionOf</*kPadded=*/true>(shape, pooled);
}

}  // namespace convlab::cuda
