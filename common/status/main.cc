#include "common/status/main.h"

#include <errno.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"

namespace convlab {
namespace {

constexpr char kNoMemory[] = "there is not enough memory";

// Only the first thread that ends the program comes back, so that one error is
// told: where memory is short, several threads fail at once. The others wait,
// unless that one waits for them.
void BeginToEnd() {
  static std::atomic_flag begun = ATOMIC_FLAG_INIT;
  thread_local bool here = false;
  if (!here && begun.test_and_set()) {
    sleep(10);
    _exit(1);
  }
  here = true;
}

// Needs no memory itself.
int TellNoMemory(absl::string_view program) {
  BeginToEnd();
  std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(program.size()),
               program.data(), kNoMemory);
  return 1;
}

// Made before main, since an error needs memory as well.
const absl::Status* no_memory = nullptr;

// Whether this thread has been refused memory.
thread_local bool refused = false;

void NoteRefusal() {
  refused = true;
  throw std::bad_alloc();
}

// Takes the place of std::terminate's end by a signal where an exception that
// says that there is no memory cannot go on: nobody catches it in this thread,
// or a function promises not to throw. (The system's library ends the program
// there without the exception at hand.) No destructors run; at_quick_exit has
// what is to be done all the same (common/files).
void EndWithoutMemory() {
  if (refused) std::quick_exit(TellNoMemory(program_invocation_short_name));
  __gnu_cxx::__verbose_terminate_handler();
}

// Flags and tables need memory before main. (The priorities up to 100 are the
// compiler's.)
__attribute__((constructor(101))) void InstallHandlers() {
  std::set_new_handler(NoteRefusal);
  std::set_terminate(EndWithoutMemory);
  no_memory = new absl::Status(absl::ResourceExhaustedError(kNoMemory));
}

}  // namespace

absl::Status CatchRefusals(absl::FunctionRef<absl::Status()> work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return *no_memory;
  } catch (const std::filesystem::filesystem_error& error) {
    return absl::InternalError(error.what());
  } catch (const std::system_error& error) {
    // Only the creation of threads throws this.
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start the threads: ", error.what()));
  }
}

int RunMain(absl::string_view program, absl::FunctionRef<absl::Status()> run) {
  try {
    const absl::Status status = CatchRefusals(run);
    if (!status.ok()) BeginToEnd();
    return FinishProgram(program, status);
  } catch (const std::bad_alloc&) {
    return TellNoMemory(program);
  }
}

}  // namespace convlab
