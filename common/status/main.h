// What every program's main does, whatever the program is for.
#ifndef COMMON_STATUS_MAIN_H_
#define COMMON_STATUS_MAIN_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace convlab {

// Calls `run` and ends as FinishProgram does; returns the exit status. What the
// system refuses (memory, threads, a folder) is an error line and status 1,
// wherever an exception cannot reach `run`'s caller too: in a thread, in a
// destructor, before main. On the way to the caller, destructors remove
// temporary files.
//
//   int main(int argc, char** argv) {
//     return convlab::RunMain(
//         "compare", [&] { return convlab::Run({argv + 1, argv + argc}); });
//   }
int RunMain(absl::string_view program, absl::FunctionRef<absl::Status()> run);

// Calls `work`; what the system refuses it is an error, as in RunMain. For the
// functions of threads, whose exceptions nobody catches.
absl::Status CatchRefusals(absl::FunctionRef<absl::Status()> work);

}  // namespace convlab

#endif  // COMMON_STATUS_MAIN_H_
