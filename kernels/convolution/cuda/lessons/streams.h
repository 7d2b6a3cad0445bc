// The kernel of the rung `streams`, for a caller that has streams of its own.
#ifndef KERNELS_CONVOLUTION_CUDA_LESSONS_STREAMS_H_
#define KERNELS_CONVOLUTION_CUDA_LESSONS_STREAMS_H_

#include "kernels/convolution/problem.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {

// Starts the convolution of x with k into y, all on the device, in `stream`.
Error StartInStream(const Problem& problem, const float* x, const float* k,
                    float* y, cudaStream_t stream);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LESSONS_STREAMS_H_
