// The course of all milestones: load, run the network, print the course's
// lines, write the run record.
#ifndef MILESTONES_RUNNER_H_
#define MILESTONES_RUNNER_H_

#include "absl/strings/string_view.h"

namespace convlab {

// Runs the milestone of that name with a program's arguments and returns the
// program's exit status. An error is one line on standard error.
int RunMilestone(absl::string_view name, int argc, char** argv);

}  // namespace convlab

#endif  // MILESTONES_RUNNER_H_
