// GPUs as their drivers describe them, for plans and estimates on a machine
// without one.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_KNOWN_DEVICES_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_KNOWN_DEVICES_H_

#include "kernels/convolution/cuda/lib/device_limits.h"

namespace convlab::cuda {

inline constexpr DeviceLimits kH200 = {
    /*compute_capability=*/90,
    /*multiprocessors=*/132,
    /*shared_per_multiprocessor=*/228 << 10,
    /*shared_per_block=*/227 << 10,
    /*clock_ghz=*/1.98,
    /*memory_gbs=*/4806};
inline constexpr DeviceLimits kA100 = {80,        108,  164 << 10,
                                       163 << 10, 1.41, 1555};
inline constexpr DeviceLimits kRtx3060 = {86,       28,   100 << 10,
                                          99 << 10, 1.78, 360};
inline constexpr DeviceLimits kDevices[] = {kH200, kA100, kRtx3060};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_KNOWN_DEVICES_H_
