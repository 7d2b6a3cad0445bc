// The table of milestone facts.
#ifndef MILESTONES_MILESTONE_H_
#define MILESTONES_MILESTONE_H_

#include "absl/strings/string_view.h"

namespace convlab {

struct Milestone {
  absl::string_view name;   // of the program, "m2"
  absl::string_view title;  // "CPU convolution"
  absl::string_view help;   // what it runs and prints, for --help
  // The framework's operators stand in for the convolution: no variant can be
  // chosen, and the accuracy is printed as the framework printed it.
  bool baseline;
  bool gpu;                       // whether it has anything to run on a GPU
  absl::string_view cpu_variant;  // runs on the CPU unless --variant is given
};

// The milestone of that name, which must exist.
const Milestone& FindMilestone(absl::string_view name);

}  // namespace convlab

#endif  // MILESTONES_MILESTONE_H_
