// Other programs that reports are finished by: gnuplot and what makes a PDF.
#ifndef REPORTS_PROGRAM_H_
#define REPORTS_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace convlab {

// Runs `arguments`, the first of which is looked for on the PATH, in `folder`,
// without a shell. What it prints is shown only where it fails: its last line
// in the error, which is NotFound where there is no such program and Internal
// where it ended with another status than 0.
absl::Status RunProgram(const std::vector<std::string>& arguments,
                        const std::string& folder);

}  // namespace convlab

#endif  // REPORTS_PROGRAM_H_
