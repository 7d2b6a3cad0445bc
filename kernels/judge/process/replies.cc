#include "kernels/judge/process/replies.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/judge/process/fault.h"

namespace convlab {
namespace {

constexpr char kForged[] = "wrote to the judge's socket";

}  // namespace

absl::Status CheckReply(const Request& request, const Reply& reply) {
  if (reply.token != request.token || reply.order != request.order) {
    return KernelFault(Fault::kBrokeRule, kForged);
  }
  if (reply.code == 0) return absl::OkStatus();
  // Memory may be short, and a GPU missing, without any fault of the kernel;
  // but only where none of its code was to run.
  auto code = absl::StatusCode::kAborted;
  if (request.order == Order::kReady || request.order == Order::kMap ||
      request.order == Order::kBegin) {
    code = static_cast<absl::StatusCode>(reply.code);
  }
  if (code != absl::StatusCode::kAborted) {
    return absl::Status(code, TextOf(reply.text));
  }
  return KernelFault(reply.broke_rule != 0 ? Fault::kBrokeRule : Fault::kEnded,
                     TextOf(reply.text));
}

absl::Status AcceptTimes(const Reply& reply, const OpTimes& times,
                         ClockCheck& clock, CallResult& result) {
  ASSIGN_OR_RETURN(
      const int64_t op_ns,
      clock.Accept(reply.op_ns, times.judge_ns, times.waited_ns, times.orders));
  result.op_ns.push_back(op_ns);
  result.judge_ns.push_back(times.judge_ns);
  if (!times.has_events) return absl::OkStatus();
  // The GPU's clock may run a little faster than the host's.
  if (reply.event_ns < 0 ||
      reply.event_ns > times.judge_ns + times.judge_ns / 50) {
    return KernelFault(Fault::kBrokeRule,
                       absl::StrCat("its device events took ", reply.event_ns,
                                    " ns in an op of ", times.judge_ns, " ns"));
  }
  result.event_ns.push_back(reply.event_ns);
  return absl::OkStatus();
}

absl::Status AcceptReport(const Reply& reply, bool trace, CallResult& result) {
  bool possible = reply.device_bytes >= 0 && reply.leaked_bytes >= 0;
  for (const PhaseWork& work : reply.work) {
    possible &= work.kernels >= 0 && work.kernel_ns >= 0 && work.copies >= 0 &&
                work.copied_bytes >= 0 && work.span_ns >= 0;
  }
  if (!possible) return KernelFault(Fault::kBrokeRule, kForged);
  if (trace && reply.traced != 0) {
    result.work.assign(std::begin(reply.work), std::end(reply.work));
  }
  result.device_bytes = reply.device_bytes;
  result.leaked_bytes = reply.leaked_bytes;
  result.guard = TextOf(reply.text);
  result.error = TextOf(reply.error);
  return absl::OkStatus();
}

}  // namespace convlab
