// An operation that PrepareOperation (prepared.h) has made ready.
#ifndef KERNELS_OPERATION_PREPARED_OPERATION_H_
#define KERNELS_OPERATION_PREPARED_OPERATION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "kernels/convolution/convolution.h"
#include "kernels/operation/operation.h"

namespace convlab {

inline constexpr char kGeneralKernel[] = "general";

// Thread safety: one Run at a time.
class PreparedOperation {
 public:
  // Of float32, or of halves if the operation is.
  struct Tensors {
    const void* x;
    const void* k;
    const void* bias;  // null unless the operation has one
    void* y;
    void* workspace;  // a multiple of kWorkspaceAlignment
  };
  // Of prepared filters, too.
  static constexpr int64_t kWorkspaceAlignment = 256;

  virtual ~PreparedOperation() = default;

  // The name of the kernel, the bytes of device memory that a run needs (0 on
  // the CPU), the class, whether Run may be recorded in a CUDA graph, and the
  // estimated time of the variant, or 0 if it has no estimate.
  const std::string& kernel() const { return kernel_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }
  int64_t filter_bytes() const { return filter_bytes_; }
  AccuracyClass accuracy() const { return accuracy_; }
  bool recordable() const { return recordable_; }
  double estimated_ns() const { return estimated_ns_; }

  // As Convolution::Run. Nothing is allocated on the device, and nothing waits.
  virtual absl::Status Run(const Tensors& tensors, Stream stream) = 0;

  // Writes the filters as RunPrepared of this object reads them; the filters
  // themselves are not needed any more.
  virtual absl::Status PrepareFilters(const void* k, void* filters,
                                      Stream stream) = 0;
  // Run, with prepared filters in place of k.
  virtual absl::Status RunPrepared(const Tensors& tensors, Stream stream) = 0;

 protected:
  explicit PreparedOperation(const Operation& operation)
      : filter_bytes_(operation.element_bytes() * operation.kernel_elements()) {
  }

  std::string kernel_ = kGeneralKernel;
  int64_t filter_bytes_;  // of the filters as they are, unless others are set
  int64_t workspace_bytes_ = 0;
  AccuracyClass accuracy_ = AccuracyClass::kFp32;
  bool recordable_ = true;
  double estimated_ns_ = 0;
};

}  // namespace convlab

#endif  // KERNELS_OPERATION_PREPARED_OPERATION_H_
