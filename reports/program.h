// What reports' programs need of the system: the program that finishes reports
// (weasyprint), and the terminal.
#ifndef REPORTS_PROGRAM_H_
#define REPORTS_PROGRAM_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace convlab {

// Runs `arguments`, the first of which is looked up on the PATH, in `folder`,
// without a shell. Returns NotFound if there is no such program, and Internal,
// with the last line of its output, if its exit status is not 0.
absl::Status RunProgram(const std::vector<std::string>& arguments,
                        const std::string& folder);

// How many characters a line of standard output has room for; 0 if that is no
// terminal.
size_t TerminalWidth();

}  // namespace convlab

#endif  // REPORTS_PROGRAM_H_
