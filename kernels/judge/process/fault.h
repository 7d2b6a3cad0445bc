// What a kernel did wrong, where a status says that its process has ended by
// its fault. The status's message is for people and decides nothing.
#ifndef KERNELS_JUDGE_PROCESS_FAULT_H_
#define KERNELS_JUDGE_PROCESS_FAULT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace convlab {

enum class Fault {
  kEnded,         // crashed, called exit(), broke a limit of memory, and so on
  kAborted,       // by abort(), mostly a check of its own
  kTookTooLong,   // more than the limit of time
  kBrokeRule,     // changed its input, forged a time or a message
  kWroteOutside,  // of its tensors, which is against the rules as well
};

// A status with the code Aborted that carries the fault.
absl::Status KernelFault(Fault fault, absl::string_view message);

// The fault that KernelFault was given; kEnded for a status without one.
Fault FaultOf(const absl::Status& status);

}  // namespace convlab

#endif  // KERNELS_JUDGE_PROCESS_FAULT_H_
