// The table of milestone facts.
#ifndef MILESTONES_MILESTONE_H_
#define MILESTONES_MILESTONE_H_

#include "absl/strings/string_view.h"

namespace convlab {

// Where a milestone runs without --device.
enum class Hardware {
  kCpu,       // on the CPU only
  kGpuOrCpu,  // on the GPU if there is one
  kGpu,       // on the CPU only with --device cpu
};

struct Milestone {
  absl::string_view name;   // of the program, "m2"
  absl::string_view title;  // "CPU convolution"
  absl::string_view help;   // what it runs and prints, for --help
  // The framework's operators replace the convolution: no variant can be
  // chosen, and the accuracy is printed as the framework printed it.
  bool baseline;
  // Runs every variant of the ladder, unless one is chosen.
  bool ladder;
  Hardware hardware;
  // The default variants on each backend. The baseline's on the GPU is the
  // library's convolution, which is not a rung of the ladder.
  absl::string_view cpu_variant;
  absl::string_view gpu_variant;
};

bool IsMilestone(absl::string_view name);

// Returns the milestone of that name, which must exist.
const Milestone& FindMilestone(absl::string_view name);

}  // namespace convlab

#endif  // MILESTONES_MILESTONE_H_
