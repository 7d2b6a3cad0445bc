// Runs programs in tests as a user does.
#ifndef TOOLS_RUN_PROGRAM_H_
#define TOOLS_RUN_PROGRAM_H_

#include <cstdio>
#include <cstdlib>
#include <string>

namespace convlab {

struct ProgramOutcome {
  int exit_status = -1;  // -1 if the program did not exit by itself
  std::string output;    // of both streams
};

// Runs a command line in the shell.
inline ProgramOutcome RunProgram(const std::string& command) {
  ProgramOutcome outcome;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  size_t count;
  while ((count = fread(buffer, 1, sizeof(buffer), pipe)) > 0) {
    outcome.output.append(buffer, count);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.exit_status = WEXITSTATUS(status);
  return outcome;
}

}  // namespace convlab

#endif  // TOOLS_RUN_PROGRAM_H_
