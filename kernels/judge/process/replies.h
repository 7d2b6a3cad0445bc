// What the judge believes of a kernel process's replies. The kernel's code runs
// in that process and can write to the same socket, so that every number is
// compared with the judge's own, or with what is possible.
#ifndef KERNELS_JUDGE_PROCESS_REPLIES_H_
#define KERNELS_JUDGE_PROCESS_REPLIES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/judge/process/clock_check.h"
#include "kernels/judge/process/last_words.h"
#include "kernels/judge/process/messages.h"
#include "kernels/judge/process/process.h"

namespace convlab {

// A reply's text as one printable line, whether or not it ends with a zero.
template <size_t kSize>
std::string TextOf(const char (&text)[kSize]) {
  return Harmless(absl::string_view(text, strnlen(text, kSize)));
}

// Whether the reply answers the request, and what went wrong if it says so.
// Aborted is the kernel's fault. The process has to end unless the status is OK
// or ResourceExhausted.
absl::Status CheckReply(const Request& request, const Reply& reply);

// What the judge knows of an op's time.
struct OpTimes {
  int64_t judge_ns = 0;   // by its own clock
  int64_t waited_ns = 0;  // of these, both waited for a CPU
  int orders = 1;         // that it gave and heard of meanwhile
  bool has_events = false;
};

// Adds an op's times to the result. Aborted if they cannot be.
absl::Status AcceptTimes(const Reply& reply, const OpTimes& times,
                         ClockCheck& clock, CallResult& result);

// Adds what the process reports of a whole call to the result; the work of the
// GPU only if it was to be traced. Aborted if it cannot be.
absl::Status AcceptReport(const Reply& reply, bool trace, CallResult& result);

}  // namespace convlab

#endif  // KERNELS_JUDGE_PROCESS_REPLIES_H_
