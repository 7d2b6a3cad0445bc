#include "kernels/judge/process/clock_check.h"

#include "absl/strings/str_format.h"
#include "kernels/judge/process/fault.h"

namespace convlab {
namespace {

// Two messages take 20 to 60 microseconds where the CPU is free.
constexpr int64_t kMessagesNs = 200'000;
constexpr int64_t kShare = 50;  // 2 % of the time
// On a busy machine a process may be woken late, again and again. What is told
// less than the judge's time by more than this is told on purpose.
constexpr int64_t kLateNs = 2'000'000;
constexpr int64_t kLateShare = 10;  // 10 % of the time
constexpr int kStrikes = 3;

absl::Status Disagree(int64_t op_ns, int64_t judge_ns) {
  return KernelFault(
      Fault::kBrokeRule,
      absl::StrFormat("its clock disagrees with the judge's: %.3f ms instead "
                      "of %.3f ms",
                      op_ns / 1e6, judge_ns / 1e6));
}

}  // namespace

absl::StatusOr<int64_t> ClockCheck::Accept(int64_t op_ns, int64_t judge_ns,
                                           int64_t waited_ns, int orders) {
  if (op_ns < 0 || op_ns > judge_ns) return Disagree(op_ns, judge_ns);
  if (judge_ns - op_ns <=
      orders * kMessagesNs + judge_ns / kShare + waited_ns) {
    // That a short op's times agree proves nothing.
    if (op_ns >= judge_ns / 2) strikes_ = 0;
    return op_ns;
  }
  if (judge_ns - op_ns > orders * kLateNs + judge_ns / kLateShare + waited_ns &&
      ++strikes_ >= kStrikes) {
    return Disagree(op_ns, judge_ns);
  }
  return judge_ns;
}

}  // namespace convlab
