// Max pooling of 2 x 2 with stride 2 as the epilogue of tensor_strips and
// wgmma_strips: a lane has the sums of whole windows, since a unit has pairs of
// columns and, in most shapes, of rows. Free of CUDA.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_HALVING_H_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_HALVING_H_

#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// For KernelVariant::reject_epilogue: null if the epilogue pools windows of
// 2 x 2, all of which lie within the output.
inline const char* RejectUnlessHalving(const Problem& problem,
                                       const Epilogue& epilogue) {
  const MaxPool& pool = epilogue.pool;
  const auto halves = [&](int64_t size) {
    return pool.Output(size) == size / 2;
  };
  return pool.size == 2 && pool.stride == 2 &&
                 halves(problem.output_height()) &&
                 halves(problem.output_width())
             ? nullptr
             : "pools windows of 2x2 with stride 2, whole ones, and has no "
               "other epilogue";
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_HALVING_H_
