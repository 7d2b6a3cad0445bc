#ifndef MILESTONES_TRAINED_WEIGHTS_H_
#define MILESTONES_TRAINED_WEIGHTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/network/network.h"

namespace convlab {

// The path of the network's trained weights among the files that Bazel puts
// beside the program, whose argv[0] is `program`; it may have been started
// through PATH or a symbolic link. NotFound if there are no such files.
absl::StatusOr<std::string> TrainedWeights(const std::string& program,
                                           const Network& network);

}  // namespace convlab

#endif  // MILESTONES_TRAINED_WEIGHTS_H_
