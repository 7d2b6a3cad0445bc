#include "kernels/judge/process/process.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/status/status.h"
#include "kernels/cuda/device.h"
#include "kernels/judge/process/child.h"
#include "kernels/judge/process/clock_check.h"
#include "kernels/judge/process/messages.h"
#include "kernels/judge/process/packed_trace.h"
#include "kernels/judge/process/replies.h"
#include "kernels/judge/process/sandbox.h"
#include "kernels/judge/process/shared_tensors.h"

namespace convlab {
namespace {

constexpr double kStartSeconds = 60;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Sanitizers reserve terabytes, and look into their own process by ptrace.
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

int64_t DefaultHostBytes() {
  return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE) / 2;
}

// The program's own path, as another mount namespace sees it too.
std::string OwnPath() {
  char path[PATH_MAX];
  const ssize_t count = readlink("/proc/self/exe", path, sizeof(path));
  return count <= 0 ? "/proc/self/exe" : std::string(path, count);
}

bool InRange(const Problem& problem) {
  for (const int64_t size :
       {problem.batch, problem.channels, problem.height, problem.width,
        problem.filters, problem.kernel_size}) {
    if (size < 1 || size > INT_MAX) return false;
  }
  return problem.output_height() > 0 && problem.output_width() > 0;
}

ProcessOptions WithMemory(ProcessOptions options) {
  if (options.memory == nullptr) {
    options.memory = std::make_shared<SharedMemory>();
  }
  return options;
}

class Process : public KernelProcess {
 public:
  explicit Process(ProcessOptions options)
      : options_(WithMemory(std::move(options))), memory_(*options_.memory) {
    if (options_.host_bytes <= 0) options_.host_bytes = DefaultHostBytes();
  }

  // Starts the process, up to where it is ready to load the library: no code of
  // the kernel has run then.
  absl::Status Prepare(const std::string& library,
                       std::vector<std::string> sandbox);
  // True: the library uses the GPU.
  absl::StatusOr<bool> Load();

  absl::StatusOr<SharedTensors> Map(const Problem& problem) override;
  absl::StatusOr<CallResult> Run(const KernelCall& call) override;
  absl::StatusOr<Activities> Traced() override;
  void Finish() override { child_->Finish(options_.seconds); }
  std::string Printed() const override { return child_->Printed(); }
  std::string Protection() const override {
    return absl::StrJoin(protection_, ", ");
  }

 private:
  // By the judge's clock, and how long the process and the judge have waited
  // for a CPU so far.
  struct Moment {
    int64_t ns, waited_ns;
  };
  Moment Now() const { return {JudgeNow(), child_->WaitedForCpu()}; }

  // Has an order carried out, and sets `ns` to the judge's time for it.
  absl::StatusOr<Reply> Ask(const Request& request, int file = -1,
                            int64_t* ns = nullptr);
  absl::StatusOr<Reply> Ask(Order order, int64_t* ns = nullptr);
  absl::Status Settle(int phase, bool before_op, int64_t* ns = nullptr);
  // `begin` is when the op's inputs could first be seen, if that was before
  // now.
  absl::Status Op(bool timed, std::optional<Moment> begin, CallResult& result);
  absl::Status Phases(const KernelCall& call, CallResult& result);
  absl::Status Report(CallResult& result);
  // Has the process see the tensors where the judge sees them. Later than the
  // judge: by then its many threads have had the system clear the pages.
  absl::Status Place(const Problem& problem);
  void SetLimits();
  // Ends the process unless it may go on after what was found.
  absl::Status Judged(absl::Status status);

  ProcessOptions options_;
  std::unique_ptr<Child> child_;
  std::vector<std::string> protection_;
  Reply facts_ = {};  // the answer to kLoad
  SharedMemory& memory_;
  int mapped_ = 0;        // the version of memory_ that the process has
  bool to_place_ = true;  // it does not know the problem yet
  ClockCheck clock_;
};

absl::Status Process::Prepare(const std::string& library,
                              std::vector<std::string> sandbox) {
  ProcessArguments arguments;
  arguments.library = library;
  arguments.gpu = options_.gpu;
  arguments.device = options_.device;
  arguments.trace = options_.trace;
  arguments.guard = options_.guard;
  arguments.threads = options_.threads;
  // A profiler talks to its part inside the process as it likes.
  arguments.filter = options_.wrapper.empty();
  // CUDA reserves more than the machine has.
  if (!options_.gpu && !kSanitized) arguments.data_bytes = options_.host_bytes;
  std::vector<std::string> command = options_.wrapper;
  if (!sandbox.empty()) protection_.emplace_back("bubblewrap");
  std::move(sandbox.begin(), sandbox.end(), std::back_inserter(command));
  command.push_back(command.empty() ? "/proc/self/exe" : OwnPath());
  for (std::string& word : arguments.Write()) {
    command.push_back(std::move(word));
  }
  ASSIGN_OR_RETURN(child_, Child::Start(command));
  child_->SetListener(options_.waiting, options_.patience);
  // None of the kernel's code runs yet, and drivers take their time.
  child_->SetLimits(options_.host_bytes, kStartSeconds);
  Request request = {};
  request.order = Order::kReady;
  Reply reply;
  if (absl::Status status = child_->Receive(&reply); !status.ok()) {
    return absl::UnavailableError(absl::StrCat(
        "a kernel's process ", status.message(), ": ", Harmless(Printed())));
  }
  RETURN_IF_ERROR(Judged(CheckReply(request, reply)));
  SetLimits();
  if (reply.seccomp != 0) protection_.emplace_back("seccomp");
  if (reply.landlock != 0) protection_.emplace_back("landlock");
  if (reply.limits != 0) protection_.emplace_back("limits");
  if (options_.trace && reply.traced == 0) {
    protection_.push_back(absl::StrCat(
        "no trace (", options_.gpu ? TextOf(reply.text) : "no GPU", ")"));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Process::Load() {
  ASSIGN_OR_RETURN(facts_, Ask(Order::kLoad));
  child_->Stop();
  return facts_.uses_gpu != 0;
}

void Process::SetLimits() {
  child_->SetLimits(options_.host_bytes + memory_.bytes(), options_.seconds);
}

absl::Status Process::Judged(absl::Status status) {
  // Less memory may do for the next call.
  if (!status.ok() && !absl::IsResourceExhausted(status)) child_->Kill();
  return status;
}

absl::StatusOr<Reply> Process::Ask(const Request& request, int file,
                                   int64_t* ns) {
  Request secret = request;
  if (getrandom(&secret.token, sizeof(secret.token), 0) !=
      sizeof(secret.token)) {
    return absl::InternalError("no random numbers from the system");
  }
  Reply reply;
  const int64_t start = JudgeNow();
  RETURN_IF_ERROR(child_->Send(secret, file));
  RETURN_IF_ERROR(child_->Receive(&reply));
  if (ns != nullptr) *ns = JudgeNow() - start;
  RETURN_IF_ERROR(Judged(CheckReply(secret, reply)));
  return reply;
}

absl::StatusOr<Reply> Process::Ask(Order order, int64_t* ns) {
  Request request = {};
  request.order = order;
  return Ask(request, -1, ns);
}

absl::StatusOr<SharedTensors> Process::Map(const Problem& problem) {
  if (!InRange(problem)) {
    return absl::InvalidArgumentError(
        "the problem has no output, or sizes "
        "that an int cannot hold");
  }
  if (child_->dead()) return absl::AbortedError("its process has ended");
  if (memory_.Holds(problem)) return memory_.tensors();
  RETURN_IF_ERROR(memory_.Place(problem));
  to_place_ = true;
  SetLimits();
  return memory_.tensors();
}

absl::Status Process::Place(const Problem& problem) {
  if (!to_place_) return absl::OkStatus();
  const bool is_new = mapped_ != memory_.version();
  Request request = {};
  request.order = Order::kMap;
  request.call.problem = problem;
  request.room = memory_.room();
  child_->Continue();
  const absl::Status placed =
      Ask(request, is_new ? memory_.file() : -1).status();
  child_->Stop();
  RETURN_IF_ERROR(placed);
  mapped_ = memory_.version();
  to_place_ = false;
  return absl::OkStatus();
}

absl::Status Process::Settle(int phase, bool before_op, int64_t* ns) {
  Request request = {};
  request.order = Order::kSettle;
  request.phase = phase;
  request.before_op = before_op;
  return Ask(request, -1, ns).status();
}

absl::Status Process::Op(bool timed, std::optional<Moment> begin,
                         CallResult& result) {
  const Moment start = begin ? *begin : Now();
  ASSIGN_OR_RETURN(const Reply reply, Ask(Order::kOp));
  const Moment end = Now();
  const int64_t judge_ns = end.ns - start.ns;
  result.whole_ns += judge_ns;
  if (!timed) return absl::OkStatus();
  OpTimes times;
  times.judge_ns = judge_ns;
  times.waited_ns = end.waited_ns - start.waited_ns;
  times.orders = begin ? 3 : 1;
  times.has_events = facts_.uses_gpu != 0;
  return Judged(AcceptTimes(reply, times, clock_, result));
}

absl::Status Process::Phases(const KernelCall& call, CallResult& result) {
  const bool gpu = facts_.uses_gpu != 0;
  // Inputs can be seen from now on, so that work on them may begin. What a GPU
  // does before the op is observed instead.
  std::optional<Moment> seen;
  if (!gpu && facts_.has_prolog == 0) seen = Now();
  child_->Continue();
  Request begin = {};
  begin.order = Order::kBegin;
  begin.call = call;
  RETURN_IF_ERROR(Ask(begin).status());
  int64_t ns;
  int phase = -1;
  if (facts_.has_prolog != 0) {
    RETURN_IF_ERROR(Settle(phase, /*before_op=*/false));
    RETURN_IF_ERROR(Ask(Order::kProlog, &ns).status());
    result.whole_ns += ns;
    phase = kProlog;
  }
  for (int i = 0; i < call.warm_ops + call.timed_ops; ++i) {
    // What the prolog has begun may end only here.
    RETURN_IF_ERROR(Settle(phase, /*before_op=*/true, &ns));
    if (phase >= 0) result.whole_ns += ns;
    RETURN_IF_ERROR(Op(/*timed=*/i >= call.warm_ops, seen, result));
    seen.reset();
    phase = kOp;
  }
  if (facts_.has_epilog != 0) {
    if (gpu) {
      RETURN_IF_ERROR(Settle(phase, /*before_op=*/false, &ns));
      result.whole_ns += ns;
    }
    RETURN_IF_ERROR(Ask(Order::kEpilog, &ns).status());
    result.whole_ns += ns;
    phase = kEpilog;
  }
  if (!gpu) return absl::OkStatus();
  RETURN_IF_ERROR(Settle(phase, /*before_op=*/false));
  return Report(result);
}

absl::Status Process::Report(CallResult& result) {
  ASSIGN_OR_RETURN(const Reply reply, Ask(Order::kReport));
  return Judged(AcceptReport(reply, options_.trace, result));
}

absl::StatusOr<CallResult> Process::Run(const KernelCall& call) {
  if (child_->dead()) return absl::AbortedError("its process has ended");
  if (!memory_.Holds(call.problem)) {
    return absl::FailedPreconditionError(
        "the problem's tensors are not mapped");
  }
  if (call.stride < 1 || call.warm_ops < 0 || call.timed_ops < 0) {
    return absl::InvalidArgumentError("a call with a stride or count below 1");
  }
  RETURN_IF_ERROR(Place(call.problem));
  // The process is stopped: what is remembered is what the caller wrote.
  memory_.Remember();
  if (facts_.zeroed_output != 0 && facts_.has_prolog == 0) {
    const absl::Span<float> y = memory_.tensors().y;
    std::fill(y.begin(), y.end(), 0.0F);
  }
  CallResult result;
  const absl::Status status = Phases(call, result);
  if (status.ok()) absl::SleepFor(absl::Seconds(call.linger_seconds));
  // It stays stopped until it is asked again, so that no thread of it can still
  // write to an output that the caller has begun to look at.
  child_->Stop();
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(Judged(memory_.Check()));
  result.process_bytes = child_->PrivateBytes();
  return result;
}

absl::StatusOr<Activities> Process::Traced() {
  if (!options_.trace) {
    return absl::FailedPreconditionError("the process is not traced");
  }
  const int file = memfd_create("trace", MFD_CLOEXEC);
  if (file < 0) return absl::InternalError("no memory for the trace");
  Request request = {};
  request.order = Order::kTraced;
  child_->Continue();
  const absl::Status written = Ask(request, file).status();
  child_->Stop();
  absl::StatusOr<Activities> activities =
      written.ok() ? ReadActivities(file) : written;
  close(file);
  return activities;
}

// Starts a process in bubblewrap, or without where that does not work. What
// fails is tried once in the life of the program.
absl::StatusOr<std::unique_ptr<Process>> Prepare(
    const std::string& library, const ProcessOptions& options) {
  static std::atomic<bool> bubblewrap_fails[2];
  std::atomic<bool>& fails = bubblewrap_fails[options.gpu ? 1 : 0];
  std::vector<std::string> sandbox;
  if (options.sandbox && options.wrapper.empty() && !fails) {
    sandbox = BubblewrapCommand(options.gpu);
  }
  if (!sandbox.empty()) {
    auto process = std::make_unique<Process>(options);
    if (process->Prepare(library, sandbox).ok()) return process;
  }
  auto process = std::make_unique<Process>(options);
  RETURN_IF_ERROR(process->Prepare(library, {}));
  if (!sandbox.empty()) fails = true;
  return process;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelProcess>> KernelProcess::Start(
    const std::string& library, const ProcessOptions& options) {
  // The kernel may not look into the judge's memory, where the references are.
  if (!kSanitized) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (options.gpu) {
    // Has the driver create its device files, which the sandbox shows.
    RETURN_IF_ERROR(cuda::FindDevice().status());
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Process> process, Prepare(library, options));
  ASSIGN_OR_RETURN(const bool uses_gpu, process->Load());
  if (uses_gpu && !options.gpu) {
    ProcessOptions with_gpu = options;
    with_gpu.gpu = true;
    return Start(library, with_gpu);
  }
  return process;
}

}  // namespace convlab
