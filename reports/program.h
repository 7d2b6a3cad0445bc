// Runs the program that finishes reports: weasyprint.
#ifndef REPORTS_PROGRAM_H_
#define REPORTS_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace convlab {

// Runs `arguments`, the first of which is looked up on the PATH, in `folder`,
// without a shell. Returns NotFound if there is no such program, and Internal,
// with the last line of its output, if its exit status is not 0.
absl::Status RunProgram(const std::vector<std::string>& arguments,
                        const std::string& folder);

}  // namespace convlab

#endif  // REPORTS_PROGRAM_H_
