// What callers of the C interface hand in, checked, as the project's own types.
#ifndef CONVLAB_ARGUMENTS_H_
#define CONVLAB_ARGUMENTS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "convlab/include/convlab/convlab.h"
#include "kernels/operation/operation.h"
#include "kernels/operation/prepared.h"

namespace convlab {

// InvalidArgument, naming the field, for values that are none. Whether the
// operation is valid as a whole, PrepareOperation says.
absl::StatusOr<Operation> ReadProblem(const convlab_problem* problem);
// InvalidArgument if a tensor has more than 2^47 bytes, which no process has. A
// plan's own tables grow with it, so that making one could end the process.
absl::Status CheckAddressable(const Operation& operation);
// Without workers.
absl::StatusOr<Target> ReadOptions(const convlab_options* options);

// What a plan is of, for the checks of its calls.
struct Planned {
  const Operation& operation;
  const Target& target;
  const PreparedOperation& prepared;
  bool ask_driver;  // whose memory it is; GPUs only
};

// InvalidArgument, naming the argument, unless all that a run needs is there,
// aligned, large enough, of the target's memory, and what it writes overlaps
// nothing. `prepared_filters` says what tensors.k is.
absl::Status CheckTensors(const Planned& plan,
                          const PreparedOperation::Tensors& tensors,
                          bool prepared_filters, size_t workspace_bytes);
// The same for the preparation of filters, which writes `bytes` or less.
absl::Status CheckFilters(const Planned& plan, const void* k,
                          const void* filters, size_t bytes);

}  // namespace convlab

#endif  // CONVLAB_ARGUMENTS_H_
