// What the judge and the kernel's process say to each other: the judge sends an
// order, the process carries it out and answers once. Both sides are the same
// program, so that the structures need no encoding. A contributed kernel can
// write to the socket too, so that the judge checks all that it receives.
#ifndef KERNELS_JUDGE_PROCESS_MESSAGES_H_
#define KERNELS_JUDGE_PROCESS_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/judge/process/process.h"
#include "kernels/judge/process/shared_tensors.h"

namespace convlab {

// The descriptors that the process is started with, beside 0, 1 and 2.
constexpr int kSocket = 3;
constexpr int kNoteFile = 4;

// The first argument of a program that is started as a kernel's process.
constexpr char kProcessArgument[] = "--convlab-kernel-process";

// How the process is to behave, as its command line.
struct ProcessArguments {
  std::string library;
  bool gpu = false;
  int device = 0;
  bool trace = false;
  bool guard = true;
  bool filter = true;  // of system calls
  int threads = 0;
  int64_t data_bytes = 0;  // of private memory; 0: no limit

  std::vector<std::string> Write() const;  // without the program's name
  bool Read(int argc, char** argv);
};

enum class Order : int32_t {
  kReady,   // not an order: the process says that it is ready to load
  kLoad,    // the library
  kMap,     // the tensors of `call.problem`; a descriptor that comes along is
            // new memory, with room for tensors of `room`
  kBegin,   // a call: prepare it
  kProlog,  // these four run the kernel's code
  kOp,
  kEpilog,
  kReport,
  kSettle,  // wait for the device, attribute its work to `phase`, reset its L2
  kTraced,  // write the activities of all phases (packed_trace.h) into the
            // descriptor that comes along
};

struct Request {
  uint64_t token;  // a secret that the answer repeats
  Order order;
  int32_t phase;      // of kSettle: to which the work so far belongs, or -1
  int32_t before_op;  // of kSettle: make the output as it must be before op
  KernelCall call;    // of kMap (the problem alone) and kBegin
  TensorRoom room;    // of kMap
};

struct Reply {
  uint64_t token;
  Order order;
  int32_t code;        // an absl::StatusCode; unless it is kOk, `text` says why
  int32_t broke_rule;  // unless `code` is kOk: the fault is kBrokeRule
  // Of kReady; if not traced, `text` says why.
  int32_t seccomp, landlock, limits, traced;
  // Of kLoad.
  int32_t uses_gpu, has_prolog, has_epilog, zeroed_output;
  // Of kOp; event_ns is -1 without a GPU.
  int64_t op_ns, event_ns;
  // Of kReport, where `text` is CallResult::guard, `error` CallResult::error.
  PhaseWork work[3];
  int64_t device_bytes, leaked_bytes;
  char error[100];
  char text[400];
};

}  // namespace convlab

#endif  // KERNELS_JUDGE_PROCESS_MESSAGES_H_
