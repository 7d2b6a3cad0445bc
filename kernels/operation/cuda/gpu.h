// An operation's own kernels on the current device. Null is the device's
// default stream. In a build without CUDA there is no device.
#ifndef KERNELS_OPERATION_CUDA_GPU_H_
#define KERNELS_OPERATION_CUDA_GPU_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"
#include "kernels/operation/cuda/general_plan.h"
#include "kernels/operation/operation.h"

namespace convlab::cuda {

// The general kernel for an operation on a device.
struct GeneralConvolution {
  GeneralPlan plan;
  // Whether it reads a copy of x by PadInput, without the zeros: then halves
  // come in vectors of floats.
  bool copies_input;
  double estimated_ns;  // with that copy and with pooling
};

// For a valid operation. Unimplemented, with the reason, unless the kernels
// below take it: they count within an image and within the filters in 32 bits.
absl::StatusOr<GeneralConvolution> PrepareGenerally(const Operation& operation);

// Which kernels stand around that of a variant.
struct WorkAround {
  bool copies_input = false;      // PadInput
  bool converts_filters = false;  // FiltersToFloats
  bool finishes = false;          // FinishSums
};

// What they take, in nanoseconds; an error if the device cannot be asked.
absl::StatusOr<double> EstimateAroundNs(const Operation& operation,
                                        const WorkAround& work);

// What cuDNN would take for the sums of NCHW, in nanoseconds; 0 if there is no
// estimate for the device, an error if it cannot be asked.
absl::StatusOr<double> EstimateCudnnNs(const Operation& operation);

// Of PadInput, FiltersToFloats and FinishSums, `overlaps` says whether they may
// overlap with the kernel before them: as GeneralPlan's, whose kernel is
// compiled for the same GPUs.

// Copies x, amid zeros, to the padded_elements() at `padded`, which are floats
// with the channels first.
absl::Status PadInput(const Operation& operation, const void* x, float* padded,
                      bool overlaps, Stream stream);

// Copies filters of halves to the kernel_elements() at `floats`.
absl::Status FiltersToFloats(const Operation& operation, const void* k,
                             float* floats, bool overlaps, Stream stream);

// The sums by the general kernel, with bias (unless it is null) and activation
// unless the operation pools: then they follow the pooling.
absl::Status ConvolveGenerally(const GeneralConvolution& convolution,
                               const void* x, const void* k, const void* bias,
                               void* sums, Stream stream);

// Applies the epilogue to the sums. Without pooling y may be the sums.
absl::Status FinishSums(const Operation& operation, const float* sums,
                        const void* bias, void* y, bool overlaps,
                        Stream stream);

// InvalidArgument, beginning with `name`, unless it is memory of that device or
// managed memory.
absl::Status CheckDeviceMemory(int device, const char* name,
                               const void* memory);

// InvalidArgument unless the stream is one of that device, as null is, or if it
// is being captured into a graph and `recordable` is false. A stream that is
// being captured cannot be asked for its device.
absl::Status CheckStream(int device, bool recordable, Stream stream);

// What tells the current device's context from those that were there before the
// device was reset; 0 if the driver does not say.
uint64_t ContextNumber();

}  // namespace convlab::cuda

#endif  // KERNELS_OPERATION_CUDA_GPU_H_
