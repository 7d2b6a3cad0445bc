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
// Without workers.
absl::StatusOr<Target> ReadOptions(const convlab_options* options);

// InvalidArgument, naming the argument, unless all that a run needs is there,
// aligned, large enough, of the target's memory (asked for GPUs if
// `ask_driver`), and what it writes overlaps nothing.
absl::Status CheckTensors(const Operation& operation, const Target& target,
                          const PreparedOperation& prepared,
                          const PreparedOperation::Tensors& tensors,
                          size_t workspace_bytes, bool ask_driver);

}  // namespace convlab

#endif  // CONVLAB_ARGUMENTS_H_
