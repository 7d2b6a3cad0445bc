// What a rung of the GPU's ladder defines. Its .cu file holds the kernels, a
// class Kernel that launches them, and the KernelVariant k<Name>; adapt.h makes
// a Variant of it. Light on purpose: nvcc parses it once per architecture.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_KERNEL_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_KERNEL_H_

#include <cstdint>

#include "common/accuracy/accuracy_class.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"
#include "kernels/convolution/track.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {

struct Inset;

// The device memory of a kernel besides its arguments: one block, of which each
// Workspace is a part. Prepare says how large it is; whoever runs the kernel
// provides it, so that several kernels can use the same memory in turns.
class KernelMemory {
 public:
  // Where each part begins is a multiple of it.
  static constexpr int64_t kAlignment = 256;

  int64_t bytes() const { return bytes_; }
  // Its place from now on, a multiple of kAlignment.
  void Place(void* data) { data_ = static_cast<char*>(data); }

 private:
  friend class Workspace;
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

// A part of a kernel's memory.
class Workspace {
 public:
  explicit Workspace(KernelMemory& memory) : memory_(memory) {}
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // Called once, by Prepare.
  void Reserve(int64_t bytes) {
    offset_ = memory_.bytes_;
    memory_.bytes_ += (bytes + KernelMemory::kAlignment - 1) /
                      KernelMemory::kAlignment * KernelMemory::kAlignment;
  }
  // In Run.
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(memory_.data_ + offset_);
  }

 private:
  KernelMemory& memory_;
  int64_t offset_ = 0;
};

// A convolution made ready for one problem on the current device.
class Kernel {
 public:
  explicit Kernel(const Problem& problem, const Epilogue& epilogue = {})
      : problem_(problem), epilogue_(epilogue) {}
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  // Called once, before Run: reserves workspace, raises limits.
  virtual Error Prepare() { return {}; }

  // Queues the convolution of x with k, and the epilogue, into y, all on the
  // device, in `stream`.
  // Need not wait for the end.
  virtual Error Run(const float* x, const float* k, float* y,
                    cudaStream_t stream) = 0;

  // Filters that stay, as Convolution has them.
  virtual int64_t filter_bytes() const { return 0; }
  virtual Error PrepareFilters(const float* /*k*/, void* /*filters*/,
                               cudaStream_t /*stream*/) {
    return {"Kernel::PrepareFilters", "prepares no filters"};
  }
  virtual Error RunPrepared(const float* /*x*/, const void* /*filters*/,
                            float* /*y*/, cudaStream_t /*stream*/) {
    return {"Kernel::RunPrepared", "prepares no filters"};
  }

  // The bias of the following runs, in place of the epilogue's, which is not
  // null. Overridden by kernels whose plans hold a copy of the epilogue.
  virtual void UseBias(const float* bias) { epilogue_.bias = bias; }

  KernelMemory& memory() { return memory_; }

 protected:
  const Problem problem_;
  Epilogue epilogue_;
  KernelMemory memory_;
};

// The GPU's counterpart of Variant (convolution.h), with the same meaning. All
// functions are called with the convolution's device as the current one.
struct KernelVariant {
  const char* name;
  AccuracyClass accuracy;
  Track track;
  const char* summary;
  const char* reason;

  // Why the problem is not taken, or null if it is. Asked only with a GPU
  // there.
  const char* (*reject)(const Problem& problem);
  // Never null; the caller deletes it. On failure `error` is set.
  Kernel* (*make)(const Problem& problem, const Epilogue& epilogue,
                  Error* error);

  // In nanoseconds; negative if the problem is not taken. Free of CUDA calls,
  // so that a choice can be tested without a GPU. Null: not a candidate.
  double (*estimate_ns)(const Problem& problem,
                        const DeviceLimits& limits) = nullptr;
  const char* detour = nullptr;
  bool exact_on_integers = true;

  // Why the epilogue is not fused, or null if it is. Null: none is.
  const char* (*reject_epilogue)(const Problem& problem,
                                 const Epilogue& epilogue) = nullptr;
  // As `make`, but x has the images inside of the problem's, and the kernel may
  // begin while the one before it ends. Null: there is no such kernel.
  Kernel* (*make_padded)(const Problem& problem, const Epilogue& epilogue,
                         const Inset& inset, Error* error) = nullptr;
  int64_t fewest_pooled_images = 0;
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
Kernel* Make(const Problem& problem, const Epilogue& epilogue, Error* error) {
  K* kernel = new K(problem, epilogue);
  *error = kernel->Prepare();
  return kernel;
}

// For KernelVariant::make_padded, where K prepares with an Inset, too.
template <typename K>
Kernel* MakePadded(const Problem& problem, const Epilogue& epilogue,
                   const Inset& inset, Error* error) {
  K* kernel = new K(problem, epilogue);
  *error = kernel->Prepare(&inset);
  return kernel;
}

// The largest grid in x.
constexpr int64_t kMaxGridX = 0x7fffffff;

// Reasons for KernelVariant::reject.
inline constexpr char kTileTooLarge[] =
    "the filters of one channel do not fit into shared memory beside the rows "
    "of the image that they need";
inline constexpr char kTooManyBlocks[] =
    "needs more than 2^31 - 1 blocks of threads";

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_KERNEL_H_
