// The kernels of tensor_split by their shape.
#ifndef KERNELS_CONVOLUTION_CUDA_SPLIT_FUNCTIONS_CUH_
#define KERNELS_CONVOLUTION_CUDA_SPLIT_FUNCTIONS_CUH_

#include <utility>

#include "kernels/convolution/cuda/split/kernel.cuh"
#include "kernels/convolution/cuda/split/padded_split.h"
#include "kernels/convolution/cuda/split/plan.h"

namespace convlab::cuda {

// The kernel of a shape.
template <int kShape, bool kPadded>
constexpr SplitFunction SplitFunctionOf() {
  constexpr SplitShape s = kSplitShapes[kShape];
  return SplitKernel<s.kernel_size, s.rows, s.tiles_n, s.row_pairs,
                     s.filters_shared, s.threads, kPadded>;
}
template <bool kPadded, int... kShapes>
SplitFunction SplitFunctionAt(int shape,
                              std::integer_sequence<int, kShapes...>) {
  static constexpr SplitFunction kTable[] = {
      SplitFunctionOf<kShapes, kPadded>()...};
  return kTable[shape];
}
template <bool kPadded>
SplitFunction SplitFunctionOfShape(int shape) {
  return SplitFunctionAt<kPadded>(
      shape, std::make_integer_sequence<int, kSplitShapeCount>());
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_SPLIT_FUNCTIONS_CUH_
