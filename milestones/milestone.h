// The table of milestone facts.
#ifndef MILESTONES_MILESTONE_H_
#define MILESTONES_MILESTONE_H_

#include "absl/strings/string_view.h"

namespace convlab {

// Where a milestone runs unless --device says it.
enum class Hardware {
  kCpu,       // nowhere else
  kGpuOrCpu,  // on the GPU if there is one
  kGpu,       // on the CPU only if asked to
};

struct Milestone {
  absl::string_view name;   // of the program, "m2"
  absl::string_view title;  // "CPU convolution"
  absl::string_view help;   // what it runs and prints, for --help
  // The framework's operators stand in for the convolution: no variant can be
  // chosen, and the accuracy is printed as the framework printed it.
  bool baseline;
  // Runs every variant of the ladder, unless one is chosen.
  bool ladder;
  Hardware hardware;
  // What runs on each unless --variant is given; the baseline's on the GPU is
  // the library's convolution, which is no rung of the ladder.
  absl::string_view cpu_variant;
  absl::string_view gpu_variant;
};

bool IsMilestone(absl::string_view name);

// The milestone of that name, which must exist.
const Milestone& FindMilestone(absl::string_view name);

}  // namespace convlab

#endif  // MILESTONES_MILESTONE_H_
