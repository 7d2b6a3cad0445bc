// Reads what nvcc, ptxas, g++ and ld print.
#ifndef KERNELS_JUDGE_SOURCE_DIAGNOSTICS_H_
#define KERNELS_JUDGE_SOURCE_DIAGNOSTICS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "kernels/judge/source/compile.h"

namespace convlab {

struct Diagnostics {
  // "new-forward.cu:12: identifier "tile" is undefined", each once and in the
  // compiler's order, but a bracket that is never closed first: what stands
  // behind it is no error then. Of an error in a header of the system: the
  // owner's line that led there. Errors for which no line of the owner's is
  // known are told only where there is no other.
  std::vector<std::string> errors;
  std::vector<std::string> warnings;      // of the owner's files, at most 10
  std::vector<DeviceFunction> functions;  // without constant_bytes
};

// Understands the output of a compilation. `files` are the owner's files, the
// main one first; lines of others are the judge's or the system's.
Diagnostics ReadDiagnostics(absl::string_view output,
                            const std::vector<std::string>& files);

// "conv<16>" of "_Z4convILi16EEvPf": without return type and parameters.
std::string ShortFunctionName(const std::string& mangled);

}  // namespace convlab

#endif  // KERNELS_JUDGE_SOURCE_DIAGNOSTICS_H_
