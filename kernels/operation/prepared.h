// An operation that is ready to run on a device: by the fastest variant that
// takes it, with a padded copy of the input and a kernel for the epilogue where
// the variant needs them, or by the general kernel.
//
//   Target target;
//   target.backend = Backend::kCuda;
//   ASSIGN_OR_RETURN(auto prepared, PrepareOperation(operation, target));
//   ... allocate prepared->workspace_bytes() on the device ...
//   RETURN_IF_ERROR(prepared->Run({x, k, bias, y, workspace}, stream));
//
// Filters that stay are prepared once, into prepared->filter_bytes():
//
//   RETURN_IF_ERROR(prepared->PrepareFilters(k, filters, stream));
//   RETURN_IF_ERROR(
//       prepared->RunPrepared({x, filters, bias, y, workspace}, stream));
#ifndef KERNELS_OPERATION_PREPARED_H_
#define KERNELS_OPERATION_PREPARED_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"
#include "kernels/operation/operation.h"
#include "kernels/operation/prepared_operation.h"

namespace convlab {

// Where, and by what.
struct Target {
  Backend backend = Backend::kCpu;
  Resources resources;  // must outlive what is prepared
  // The loosest class that will do.
  AccuracyClass accuracy = AccuracyClass::kFp32;
  // A variant of the backend, kGeneralKernel, or, if it is empty, what is
  // estimated to be the fastest.
  std::string kernel;
};

// InvalidArgument for an operation that is not valid or the name of no kernel;
// Unimplemented, with the reason, if the kernel does not take the operation or
// is less accurate than asked for; Unavailable if there is no such device.
absl::StatusOr<std::unique_ptr<PreparedOperation>> PrepareOperation(
    const Operation& operation, const Target& target);

// What cuDNN's best plan for NCHW of the operation's type would take on the
// target's GPU, without the epilogue, in nanoseconds; 0 if there is no
// estimate, as on the CPU, and an error if the GPU cannot be asked.
absl::StatusOr<double> EstimateCudnnNs(const Operation& operation,
                                       const Target& target);

// InvalidArgument, beginning with `name`, unless the memory belongs to the
// device of the target: device memory, or managed memory, for a GPU.
absl::Status CheckMemory(const Target& target, const char* name,
                         const void* memory);

// InvalidArgument unless a run on the target may be queued in the stream: if it
// is another device's, and if it is being captured into a CUDA graph and
// `recordable` is false. `context` is what ContextOf returned when the run was
// prepared: InvalidArgument, too, if the device has been reset since then.
absl::Status CheckQueue(const Target& target, uint64_t context, bool recordable,
                        Stream stream);

// A number that changes when the target's device is reset; 0 on the CPU, and if
// the driver does not tell.
uint64_t ContextOf(const Target& target);

}  // namespace convlab

#endif  // KERNELS_OPERATION_PREPARED_H_
