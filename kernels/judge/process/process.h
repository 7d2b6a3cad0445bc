// Runs a contributed kernel in a process of its own. The judge, the process
// that includes this header, owns inputs, reference, clock and verdict; the
// kernel's process sees one call at a time through shared memory and a socket,
// and nothing that it says is believed without a check.
//
//   ASSIGN_OR_RETURN(auto process, KernelProcess::Start(library, options));
//   ASSIGN_OR_RETURN(const auto tensors, process->Map(problem));
//   ... fill tensors.x and tensors.k, Poison(tensors.y) ...
//   ASSIGN_OR_RETURN(const CallResult result, process->Run(call));
//   ... compare tensors.y ...
//
// Errors of Run and Start that are the kernel's fault have the code Aborted and
// one line that says what happened: "crashed (SIGSEGV) in conv_forward_gpu",
// "called exit(0)", "took more than 60 s", "illegal memory access", "started a
// process". The process is dead then; the judge goes on. FaultOf (fault.h) says
// what kind of fault it is. All other codes are failures of the judge or the
// machine.
//
// Between the calls of these functions the process is stopped, so that no
// thread of it can change what the judge looks at. It ends with the thread that
// called Start.
#ifndef KERNELS_JUDGE_PROCESS_PROCESS_H_
#define KERNELS_JUDGE_PROCESS_PROCESS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/record/activities.h"
#include "kernels/convolution/problem.h"

namespace convlab {

class SharedMemory;

struct ProcessOptions {
  bool gpu = false;  // the library uses the GPU; found out if it is not known
  int device = 0;
  double seconds = 60;     // for loading, and for each call
  int64_t host_bytes = 0;  // resident memory beyond the tensors'; 0: half
                           // of the machine's
  int threads = 0;         // of the CPU that it may use; 0: all
  bool trace = false;      // observes the GPU's work by CUPTI
  bool sandbox = true;     // bubblewrap where it works
  bool guard = true;       // device memory of course files gets red zones
  std::vector<std::string> wrapper;  // a command that starts the process
                                     // ("ncu", its flags)
  // Of the tensors; to be handed from a process that is dead to the next one.
  // Null: of its own.
  std::shared_ptr<SharedMemory> memory;
  // Called each second while an answer takes longer than `patience` seconds,
  // with the seconds so far, and with 0 as soon as the wait is over.
  std::function<void(double seconds)> waiting;
  double patience = 3;
};

// The GPU's work during one part of a call, by CUPTI.
struct PhaseWork {
  int64_t kernels = 0;
  int64_t kernel_ns = 0;  // the sum of their times
  int64_t copies = 0;     // and memsets
  int64_t copied_bytes = 0;
  int64_t span_ns = 0;  // from the first begin to the last end
};
enum Phase { kProlog = 0, kOp = 1, kEpilog = 2 };

// A request: prolog, `warm_ops` calls of op that are not timed, `timed_ops`
// that are, epilog. Where the process takes the place of prolog and epilog
// (CONVLAB_DEVICE_TENSORS), they copy the tensors. Every op finds its output as
// ConvlabKernel::zeroed_output says, unless the kernel's own prolog made it.
struct KernelCall {
  Problem problem;
  int stride = 1;
  int warm_ops = 0;
  int timed_ops = 1;
  // How long the process may go on after the last op has returned, before it is
  // stopped and its output is looked at. Shows what threads still do then.
  double linger_seconds = 0;
};

struct CallResult {
  // One for each timed op. By the clock of the kernel's process, from an idle
  // device to an idle device; or the judge's, if that differs by more than two
  // messages take. Aborted if it does so repeatedly.
  std::vector<int64_t> op_ns;
  // Device events round the same; empty on the CPU.
  std::vector<int64_t> event_ns;
  // The judge's own clock, from its permission to begin to the message that
  // the op has ended: a few microseconds more than op_ns.
  std::vector<int64_t> judge_ns;
  // The judge's clock from the begin of the prolog to the output in host
  // memory: the sum over prolog, all ops and epilog, without what the judge and
  // the process do between them.
  int64_t whole_ns = 0;
  // If traced.
  std::vector<PhaseWork> work;  // by Phase; empty if not traced
  int64_t device_bytes = 0;     // the most that was allocated at one time
  int64_t leaked_bytes = 0;
  // The process's resident memory after the call, without the tensors.
  int64_t process_bytes = 0;
  std::string guard;  // damage to red zones in device memory, or empty
  std::string error;  // of a CUDA call of the file that failed, or empty
};

// Views of the shared memory. Red zones lie around each; Run checks those in
// host memory.
struct SharedTensors {
  absl::Span<float> x, k, y;
};

class KernelProcess {
 public:
  // Starts the process and loads the library, which may run constructors.
  static absl::StatusOr<std::unique_ptr<KernelProcess>> Start(
      const std::string& library, const ProcessOptions& options);
  virtual ~KernelProcess() = default;  // kills the process and its children

  // Makes room for a problem's tensors (output for stride 1); the views are
  // valid until the next call. ResourceExhausted if memory is short.
  virtual absl::StatusOr<SharedTensors> Map(const Problem& problem) = 0;

  // Runs one call on the mapped tensors. The output was poisoned by the caller.
  // Aborted, among others, if the kernel wrote outside its tensors.
  virtual absl::StatusOr<CallResult> Run(const KernelCall& call) = 0;

  // Of a traced process: the GPU's work and the API calls in the prologs, ops
  // and epilogs of all calls so far, in ns since the first of them.
  // FailedPrecondition if it is not traced.
  virtual absl::StatusOr<Activities> Traced() = 0;

  // Ends the process in order, as a profiler that started it (`wrapper`) needs
  // to write its results. Nothing may be called afterwards but Printed.
  virtual void Finish() = 0;

  // Whatever the kernel printed so far, at most 64 KiB of it.
  virtual std::string Printed() const = 0;
  // "bubblewrap, seccomp, limits"; for the verdict and the record.
  virtual std::string Protection() const = 0;
};

// Must be the first statement of main() of every program that starts kernel
// processes, since they are started as the program itself with other arguments.
// Returns only if this process is not one of them.
void RunAsKernelProcessIfAsked(int argc, char** argv);

}  // namespace convlab

#endif  // KERNELS_JUDGE_PROCESS_PROCESS_H_
