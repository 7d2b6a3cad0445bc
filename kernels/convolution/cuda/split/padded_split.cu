#include "kernels/convolution/cuda/split/functions.cuh"
#include "kernels/convolution/cuda/split/padded_split.h"

namespace convlab::cuda {

SplitFunction PaddedSplitFunction(int shape) {
  return SplitFunctionOfShape</*kPadded=*/true>(shape);
}

}  // namespace convlab::cuda
