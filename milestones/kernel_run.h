// Runs contributed kernels (--kernel) in a milestone: compiles them, classifies
// the images with them, judges them and says where they stand.
#ifndef MILESTONES_KERNEL_RUN_H_
#define MILESTONES_KERNEL_RUN_H_

#include "absl/status/status.h"
#include "milestones/session.h"

namespace convlab {

// Compiles the kernels, and for each runs the network, prints the lines of its
// term and the verdict, and adds it to the record: as the run's convolutions,
// or in the ladder of a milestone that has one. The sources are those of
// session.kernels. InvalidArgument with the compiler's first error if one does
// not compile; FailedPrecondition, naming them, if kernels are not right.
absl::Status RunKernels(Session& session);

// Does the same whenever a file of a kernel is saved, until the user ends the
// program. Errors are printed and do not end it.
absl::Status WatchKernels(Session& session);

}  // namespace convlab

#endif  // MILESTONES_KERNEL_RUN_H_
