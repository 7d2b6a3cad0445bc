// Runs another program and collects what it prints.
#ifndef COMMON_PROGRAM_PROGRAM_H_
#define COMMON_PROGRAM_PROGRAM_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

// Where a shell would look for the program: in each folder of the PATH, in
// order.
std::vector<std::string> PlacesOnPath(absl::string_view name);

// The first of these paths that is a file which this user may run; empty if
// none is.
std::string FindProgram(const std::vector<std::string>& places);

struct ProgramOptions {
  std::string folder;  // where it runs; empty: where this program runs
  // Set or replaced in its environment.
  std::vector<std::pair<std::string, std::string>> environment;
  double seconds = 0;  // after which it is killed; 0: never
};

// A program that prints without end does not take all memory.
inline constexpr size_t kMostOutput = size_t{16} << 20;  // bytes

struct ProgramResult {
  int exit_status = 0;  // 128 + the signal's number if a signal ended it
  // Standard output and error, in the order of printing; the first kMostOutput
  // bytes of them.
  std::string output;
};

// Runs `arguments`, the first of which is looked up on the PATH, without a
// shell and with an empty standard input. What it starts belongs to a process
// group of its own. Returns NotFound if there is no such program,
// ResourceExhausted if the system refuses to start it, and DeadlineExceeded if
// it ran out of time; then the whole group is killed.
absl::StatusOr<ProgramResult> RunProgram(
    const std::vector<std::string>& arguments, const ProgramOptions& options);

}  // namespace convlab

#endif  // COMMON_PROGRAM_PROGRAM_H_
