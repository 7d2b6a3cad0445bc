// The command line, the same for every milestone:
//   NAME [MODEL] [SIZE] [--flags]
#ifndef MILESTONES_COMMAND_LINE_H_
#define MILESTONES_COMMAND_LINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/network/network.h"
#include "kernels/convolution/convolution.h"
#include "milestones/arguments.h"
#include "milestones/milestone.h"
#include "milestones/model.h"

namespace convlab {

struct CommandLine {
  bool help = false;
  bool list = false;
  bool check = false;  // CheckInputs, and no run
  std::string model;   // as the user gave it
  Model found;
  const Network* network = nullptr;  // of `found`
  std::optional<int64_t> size;       // absent: the whole data set
  std::string weights;               // a file; empty: the trained weights
  std::string data;                  // a folder
  std::string split;
  Device device = Device::kAuto;
  std::vector<std::string> variants;  // one per convolution; empty: the default
  bool fuse = false;
  std::vector<std::string> kernels;  // files or folders of contributed kernels
  bool quick = false;        // the kernels are judged on the network's layers
  bool competition = false;  // and timed by the rules of the competition
  bool watch = false;        // and judged again whenever a file changes
  int threads = 1;
  std::string cpu_target;     // a name or "auto", which the session checks
  std::optional<int> repeat;  // absent: the milestone decides
  bool strict = false;        // an unexpected number of answers is a failure
  std::string record;         // a file; empty: none
  std::string profile;        // a file; empty: none
};

// Parses and checks everything that can be checked without touching data or
// hardware; a network in an ONNX file is read. Returned paths are absolute or
// relative to the process's folder. InvalidArgument says which argument is
// wrong and what was expected.
absl::StatusOr<CommandLine> ParseCommandLine(
    const Milestone& milestone, const std::vector<std::string>& args);

// The text that --help prints.
std::string HelpText(const Milestone& milestone);

// The text that --list prints: the networks, and the variants that the
// milestone takes.
std::string ListText(const Milestone& milestone);

}  // namespace convlab

#endif  // MILESTONES_COMMAND_LINE_H_
