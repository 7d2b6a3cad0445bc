// Compares the clock of a kernel's process with the judge's.
#ifndef KERNELS_JUDGE_PROCESS_CLOCK_CHECK_H_
#define KERNELS_JUDGE_PROCESS_CLOCK_CHECK_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace convlab {

// The process times an op from within, the judge from its permission to the
// answer, which takes some microseconds more. A process that tells less than
// that has a wrong clock.
class ClockCheck {
 public:
  // Returns the time to be taken for an op: the process's, or the judge's own
  // if they differ by more than messages take. `waited_ns` is how long both
  // have waited for a CPU meanwhile, and `orders` how many orders the judge has
  // given and heard of. Aborted if the process's time is longer than the
  // judge's, which cannot be, or shorter by milliseconds three times without a
  // right one between them: less than that may be a busy machine's fault.
  absl::StatusOr<int64_t> Accept(int64_t op_ns, int64_t judge_ns,
                                 int64_t waited_ns, int orders = 1);

 private:
  int strikes_ = 0;
};

}  // namespace convlab

#endif  // KERNELS_JUDGE_PROCESS_CLOCK_CHECK_H_
