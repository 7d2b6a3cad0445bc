#include "common/record/recorded_command.h"

#include <cstddef>

namespace convlab {

std::vector<std::string> RecordedCommand(std::vector<std::string> command) {
  if (command.empty()) return command;
  std::string& program = command.front();
  const size_t slash = program.rfind('/');
  if (slash != std::string::npos) program.erase(0, slash + 1);
  return command;
}

}  // namespace convlab
