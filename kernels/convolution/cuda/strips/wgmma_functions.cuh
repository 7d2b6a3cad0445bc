// The kernels of wgmma_strips by their shape.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_FUNCTIONS_CUH_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_FUNCTIONS_CUH_

#include <utility>

#include "kernels/convolution/cuda/strips/padded_strips.h"
#include "kernels/convolution/cuda/strips/wgmma_plan.h"
#include "kernels/convolution/cuda/strips/wgmma_strips.cuh"

namespace convlab::cuda {

// The kernel of a shape. Plans with an epilogue have units of pairs of rows.
template <bool kPadded, int... kShapes>
WgmmaStripsFunction WgmmaStripsFunctionAt(
    int shape, bool pooled, std::integer_sequence<int, kShapes...>) {
  static constexpr WgmmaStripsFunction kTable[][2] = {
      {WgmmaStripsKernel<kShapes, false, kPadded>,
       WgmmaStripsKernel<kShapes, kWgmmaStripsShapes[kShapes].rows % 2 == 0,
                         kPadded>}...};
  return kTable[shape][pooled];
}
template <bool kPadded>
WgmmaStripsFunction WgmmaStripsFunctionOf(int shape, bool pooled) {
  return WgmmaStripsFunctionAt<kPadded>(
      shape, pooled, std::make_integer_sequence<int, kWgmmaStripsShapeCount>());
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_WGMMA_FUNCTIONS_CUH_
