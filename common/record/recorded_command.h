// The command of a run as its record tells it.
#ifndef COMMON_RECORD_RECORDED_COMMAND_H_
#define COMMON_RECORD_RECORDED_COMMAND_H_

#include <string>
#include <vector>

namespace convlab {

// The program without its folder, which says where somebody built it and
// nothing of what ran; the arguments as they were given.
std::vector<std::string> RecordedCommand(std::vector<std::string> command);

}  // namespace convlab

#endif  // COMMON_RECORD_RECORDED_COMMAND_H_
