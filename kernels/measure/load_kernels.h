// The launchers behind gpu_loads.h, for nvcc; without Abseil, which compiles
// slowly.
#ifndef KERNELS_MEASURE_LOAD_KERNELS_H_
#define KERNELS_MEASURE_LOAD_KERNELS_H_

#include <cstdint>

#include "kernels/cuda/error.h"

namespace convlab::cuda {

Error LaunchWait(int microseconds);
Error LaunchFill(void* out, int64_t bytes);
Error LaunchCopy(const void* in, void* out, int64_t bytes);

// Sets `*flops` to the launch's FLOPs, or to 0 if the device or the build lacks
// the instructions. Writes some floats to `sink`.
inline constexpr int kSinkFloats = 256;
Error LaunchFma(int rounds, float* sink, double* flops);
Error LaunchMma(bool tf32, int rounds, float* sink, double* flops);
Error LaunchWgmma(bool tf32, int rounds, float* sink, double* flops);

}  // namespace convlab::cuda

#endif  // KERNELS_MEASURE_LOAD_KERNELS_H_
