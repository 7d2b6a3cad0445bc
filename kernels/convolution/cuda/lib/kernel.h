// What a rung of the GPU's ladder defines. Its .cu file holds the kernels, a
// class Kernel that launches them, and the KernelVariant k<Name>; adapt.h makes
// a Variant of it. Light on purpose: nvcc parses it once per architecture.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_KERNEL_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_KERNEL_H_

#include <cstdint>

#include "kernels/convolution/accuracy.h"
#include "kernels/convolution/problem.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {

// A convolution made ready for one problem on the current device.
class Kernel {
 public:
  explicit Kernel(const Problem& problem) : problem_(problem) {}
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  // Called once, before Run: allocates workspace, raises limits.
  virtual Error Prepare() { return {}; }

  // Starts the convolution of x with k into y, all on the device, in the
  // default stream. Need not wait for the end.
  virtual Error Run(const float* x, const float* k, float* y) = 0;

 protected:
  const Problem problem_;
};

// The GPU's counterpart of Variant (convolution.h), with the same meaning.
struct KernelVariant {
  const char* name;
  AccuracyClass accuracy;
  const char* summary;
  const char* reason;

  // Why the problem is not taken, or null if it is. Asked only with a GPU
  // there.
  const char* (*reject)(const Problem& problem);
  // Never null; the caller deletes it. On failure `error` is set.
  Kernel* (*make)(const Problem& problem, Error* error);

  bool exact_on_integers = true;
};

// For KernelVariant::reject and ::make.
inline const char* TakeAll(const Problem&) { return nullptr; }

// Kernels count within one image and one filter in 32 bits, and a block of
// threads may reach beyond the end.
inline const char* RejectHugeImages(const Problem& problem) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1024;
  const int64_t image = problem.height * problem.width;
  if (image * problem.channels < kMost && image * problem.filters < kMost &&
      problem.kernel_elements() < kMost) {
    return nullptr;
  }
  return "one image, in or out, or the weights have more than 2^31 elements";
}

template <typename K>
Kernel* Make(const Problem& problem, Error* error) {
  K* kernel = new K(problem);
  *error = kernel->Prepare();
  return kernel;
}

// 90 for compute capability 9.0; 0 if the device cannot be asked.
inline int ComputeCapability() {
  int major = 0, minor = 0;
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) !=
          cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0) !=
          cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return 10 * major + minor;
}

// Lets a kernel have as much dynamic shared memory as a block may have. The
// limit is the function's, which convolutions of several problems share: one
// that set what it needs itself would take from the others.
inline Error AllowAllSharedMemory(const void* kernel) {
  cudaFuncAttributes attributes;
  RETURN_IF_CUDA_ERROR(cudaFuncGetAttributes(&attributes, kernel));
  int most = 0;
  RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(
      &most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  RETURN_IF_CUDA_ERROR(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
      most - static_cast<int>(attributes.sharedSizeBytes)));
  return {};
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
    cudaGetLastError();  // Prepare meets it again, and says it
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
// Launches a kernel in the default stream that may start before the one before
// it has ended, if it may_overlap: as soon as all blocks of that one have
// called LetNextKernelStart (ptx.cuh). The kernel calls
// WaitForKernelBefore before it reads what that one wrote.
template <typename... Parameters>
Error LaunchOverlapping(const char* name, void (*kernel)(Parameters...),
                        bool may_overlap, int64_t blocks, int threads,
                        int shared_bytes,
                        typename Exactly<Parameters>::Type... parameters) {
  cudaLaunchAttribute overlapping = {};
  overlapping.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlapping.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.attrs = &overlapping;
  config.numAttrs = may_overlap ? 1 : 0;
  void* pointers[] = {&parameters...};
  return Check(cudaLaunchKernelExC(
                   &config, reinterpret_cast<const void*>(kernel), pointers),
               name);
}

// Device memory of a kernel's own.
class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() { cudaFree(data_); }

  Error Allocate(int64_t bytes) {
    RETURN_IF_CUDA_ERROR(cudaMalloc(&data_, bytes));
    return {};
  }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

constexpr int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The largest grid in x, and in y and z.
constexpr int64_t kMaxGridX = 0x7fffffff;
constexpr int64_t kMaxGridYZ = 65535;

// A reason for KernelVariant::reject.
inline constexpr char kTooManyBlocks[] =
    "needs more than 2^31 - 1 blocks of threads";

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_KERNEL_H_
