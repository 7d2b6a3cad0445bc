// Parts of Abseil that a shared library cannot take from Debian's archives.
//
// The archives are compiled for programs. A shared library can take their
// objects as long as all symbols are its own (convlab.map), except those that
// access thread-local variables: the place of these would have to be known when
// the process starts, and Python could not open the library. They are cord.cc,
// cordz_functions.cc and sysinfo.cc. Defining here what others use of them
// keeps the linker from taking them. If it needs more of them, it takes them,
// and fails because symbols are defined twice; dist_test finds what it took
// without that.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <thread>

#include "absl/base/internal/sysinfo.h"
#include "absl/strings/cord.h"

namespace absl {
ABSL_NAMESPACE_BEGIN

// A status refers to cords for its payloads. Ours have none.
void Cord::DestroyCordSlow() { std::abort(); }
void Cord::InlineRep::UnrefTree() { std::abort(); }
bool Cord::EqualsImpl(const Cord&, size_t) const { std::abort(); }
Cord::operator std::string() const { std::abort(); }

namespace base_internal {

int NumCPUs() { return static_cast<int>(std::thread::hardware_concurrency()); }

// In Hz; of the cycle clock, whose times nobody asks for.
double NominalCPUFrequency() { return 1; }

pid_t GetTID() { return static_cast<pid_t>(syscall(SYS_gettid)); }

pid_t GetCachedTID() {
  thread_local const pid_t known = GetTID();
  return known;
}

}  // namespace base_internal

ABSL_NAMESPACE_END
}  // namespace absl
