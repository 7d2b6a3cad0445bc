// The contributed kernels of a command line.
#ifndef MILESTONES_KERNEL_FILES_H_
#define MILESTONES_KERNEL_FILES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"
#include "kernels/judge/source/interface.h"
#include "milestones/command_line.h"
#include "milestones/milestone.h"

namespace convlab {

// Reads the kernels of the command line. InvalidArgument or NotFound, in one
// line, for a file that is no kernel (interface.h), for one that the milestone
// or --device does not run, and for several of which some use the GPU and some
// do not.
absl::StatusOr<std::vector<KernelSource>> ReadKernels(
    const Milestone& milestone, const CommandLine& line);

// The backend of these kernels, which ReadKernels returned and of which there
// is at least one. A library does not say which it uses before it is loaded: it
// is taken to use the GPU, unless the milestone or --device is the CPU's.
Backend BackendOf(const std::vector<KernelSource>& kernels,
                  const Milestone& milestone, const CommandLine& line);

}  // namespace convlab

#endif  // MILESTONES_KERNEL_FILES_H_
