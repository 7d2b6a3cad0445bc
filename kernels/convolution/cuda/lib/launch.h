// Launching kernels on the current device: its limits, dynamic shared memory,
// kernels that overlap with the one before. Light, as kernel.h is.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_LAUNCH_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_LAUNCH_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {

// An attribute of the current device.
inline Error AskDevice(cudaDeviceAttr attribute, int* value) {
  int device = 0;
  RETURN_IF_CUDA_ERROR(cudaGetDevice(&device));
  RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(value, attribute, device));
  return {};
}

// The limits of the current device. A thread asks once for each change of the
// device: drivers take a millisecond to tell the clocks.
inline Error AskLimits(DeviceLimits* limits) {
  thread_local int known_device = -1;
  thread_local DeviceLimits known;
  int device = 0;
  RETURN_IF_CUDA_ERROR(cudaGetDevice(&device));
  if (device != known_device) {
    int major = 0, minor = 0, clock_khz = 0, memory_khz = 0, bus_bits = 0;
    DeviceLimits found;
    RETURN_IF_FAILED(AskDevice(cudaDevAttrComputeCapabilityMajor, &major));
    RETURN_IF_FAILED(AskDevice(cudaDevAttrComputeCapabilityMinor, &minor));
    RETURN_IF_FAILED(
        AskDevice(cudaDevAttrMultiProcessorCount, &found.multiprocessors));
    RETURN_IF_FAILED(AskDevice(cudaDevAttrMaxSharedMemoryPerMultiprocessor,
                               &found.shared_per_multiprocessor));
    RETURN_IF_FAILED(AskDevice(cudaDevAttrMaxSharedMemoryPerBlockOptin,
                               &found.shared_per_block));
    RETURN_IF_FAILED(AskDevice(cudaDevAttrClockRate, &clock_khz));
    RETURN_IF_FAILED(AskDevice(cudaDevAttrMemoryClockRate, &memory_khz));
    RETURN_IF_FAILED(AskDevice(cudaDevAttrGlobalMemoryBusWidth, &bus_bits));
    found.compute_capability = 10 * major + minor;
    found.clock_ghz = clock_khz * 1e-6;
    // Two transfers per clock, on all memories that GPUs have.
    found.memory_gbs = 2e-6 * memory_khz * bus_bits / 8;
    known = found;
    known_device = device;
  }
  *limits = known;
  return {};
}

// 90 for compute capability 9.0; 0 if the device cannot be asked.
inline int ComputeCapability() {
  DeviceLimits limits;
  return AskLimits(&limits).failed() ? 0 : limits.compute_capability;
}

// Lets a kernel have as much dynamic shared memory as a block may have. The
// limit is the function's, which convolutions of several problems share: one
// that set what it needs itself would take from the others.
inline Error AllowAllSharedMemory(const void* kernel) {
  cudaFuncAttributes attributes;
  RETURN_IF_CUDA_ERROR(cudaFuncGetAttributes(&attributes, kernel));
  int most = 0;
  RETURN_IF_FAILED(AskDevice(cudaDevAttrMaxSharedMemoryPerBlockOptin, &most));
  RETURN_IF_CUDA_ERROR(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
      most - static_cast<int>(attributes.sharedSizeBytes)));
  return {};
}

// For KernelVariant::reject_epilogue: `reason` if there is no plan with the
// epilogue, or null. A device that cannot be asked fails in Prepare, with the
// reason.
template <typename Problem, typename Epilogue, typename Plan>
const char* RejectWithoutPlan(bool (*make)(const Problem&, const DeviceLimits&,
                                           Plan*, const Epilogue&),
                              const Problem& problem, const Epilogue& epilogue,
                              const char* reason) {
  DeviceLimits limits;
  if (AskLimits(&limits).failed()) return nullptr;
  Plan plan;
  return make(problem, limits, &plan, epilogue) ? nullptr : reason;
}

// For KernelVariant::reject: why this device cannot run `kernel`, which needs
// code of compute capability 8.0, or null.
inline const char* RejectWithoutTensorCores(const void* kernel) {
  if (ComputeCapability() < 80) {
    return "needs tensor cores of compute capability 8.0 or later";
  }
  // The driver may have compiled the kernels from an older GPU's code.
  cudaFuncAttributes attributes;
  if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess) {
    cudaGetLastError();  // Prepare meets it again, with the reason
    return nullptr;
  }
  if (attributes.ptxVersion < 80) {
    return "this program has no code of compute capability 8.0 for this GPU: "
           "build it with compute_80 among //tools/cuda:archs";
  }
  return nullptr;
}

// Whether a kernel's code waits for the kernel before it where it says so
// (WaitForKernelBefore): if it is of compute capability 9.0 or later.
inline bool MayOverlap(const void* kernel) {
  cudaFuncAttributes attributes;
  if (cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess) {
    return attributes.ptxVersion >= 90;
  }
  cudaGetLastError();
  return false;
}

// A parameter whose type no argument decides.
template <typename T>
struct Exactly {
  using Type = T;
};

// Launches a kernel in `stream` that may start before the one before it has
// ended, if it may_overlap: as soon as all blocks of that one have
// called LetNextKernelStart (ptx.cuh). The kernel calls
// WaitForKernelBefore before it reads what that one wrote.
template <typename... Parameters>
Error LaunchOverlapping(const char* name, void (*kernel)(Parameters...),
                        bool may_overlap, int64_t blocks, int threads,
                        int shared_bytes, cudaStream_t stream,
                        typename Exactly<Parameters>::Type... parameters) {
  cudaLaunchAttribute overlapping = {};
  overlapping.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlapping.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlapping;
  config.numAttrs = may_overlap ? 1 : 0;
  void* pointers[] = {&parameters...};
  return Check(cudaLaunchKernelExC(
                   &config, reinterpret_cast<const void*>(kernel), pointers),
               name);
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_LAUNCH_H_
