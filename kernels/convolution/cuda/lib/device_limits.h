// What plans and estimates of time need to know of a GPU. Free of CUDA, so that
// both can be tested for any GPU on a machine without one.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_DEVICE_LIMITS_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_DEVICE_LIMITS_H_

namespace convlab::cuda {

struct DeviceLimits {
  int compute_capability = 0;  // 90 for 9.0
  int multiprocessors = 0;
  int shared_per_multiprocessor = 0;  // bytes
  int shared_per_block = 0;           // bytes, where a kernel opts in
  double clock_ghz = 0;               // of the multiprocessors, at most
  double memory_gbs = 0;              // of device memory, at most
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_DEVICE_LIMITS_H_
