// Images amid zeros that are not in memory. Free of CUDA.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_INSET_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_INSET_H_

namespace convlab::cuda {

// Where the image that is in memory stands in the problem's, which has zeros
// around it.
struct Inset {
  int top, left, height, width;
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_INSET_H_
