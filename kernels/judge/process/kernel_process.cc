// The side of the kernel's process: it loads the library and carries out the
// judge's orders. Nothing here is a secret or a protection: the kernel's code
// runs in the same memory.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "kernels/cuda/trace.h"
#include "kernels/judge/process/fault.h"
#include "kernels/judge/process/kernel_device.h"
#include "kernels/judge/process/last_words.h"
#include "kernels/judge/process/messages.h"
#include "kernels/judge/process/packed_trace.h"
#include "kernels/judge/process/process.h"
#include "kernels/judge/process/sandbox.h"
#include "kernels/judge/process/shared_tensors.h"
#include "kernels/judge/source/abi.h"

namespace convlab {
namespace {

// A library that is loaded later cannot take the place of this function: the
// program's own references were bound before.
int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

void Add(const Activities& activities, PhaseWork& work) {
  int64_t begin = INT64_MAX;
  int64_t end = 0;
  for (const GpuActivity& activity : activities.gpu) {
    begin = std::min(begin, activity.start_ns);
    end = std::max(end, activity.end_ns);
    if (activity.kind == GpuActivity::Kind::kKernel) {
      ++work.kernels;
      work.kernel_ns += activity.end_ns - activity.start_ns;
    } else {
      ++work.copies;
      work.copied_bytes += activity.bytes;
    }
  }
  if (!activities.gpu.empty()) work.span_ns += end - begin;
}

class KernelSide {
 public:
  explicit KernelSide(ProcessArguments arguments)
      : arguments_(std::move(arguments)) {}

  [[noreturn]] void Serve();

 private:
  absl::Status Prepare(Reply& reply);
  absl::Status Carry(const Request& request, int file, Reply& reply);
  absl::Status Load(Reply& reply);
  absl::Status Begin(const KernelCall& call);
  absl::Status Settle(const Request& request);
  absl::Status MakeOutput();
  absl::Status Call(void (*function)(ConvlabCall*));
  absl::Status Prolog();
  absl::Status Op(Reply& reply);
  absl::Status Epilog();
  absl::Status Report(Reply& reply);
  void Keep(Activities activities);

  bool has_device_tensors() const {
    return kernel_->tensors == CONVLAB_DEVICE_TENSORS;
  }

  const ProcessArguments arguments_;
  GuardedTensors tensors_;
  std::unique_ptr<KernelDevice> device_;
  bool traced_ = false;
  int64_t first_trace_ns_ = 0;  // when the first one began; 0: none has
  int64_t trace_ns_ = 0;        // when the last one began
  Activities kept_;             // of all phases, in ns since first_trace_ns_
  const ConvlabKernel* kernel_ = nullptr;
  Problem problem_;
  ConvlabCall call_ = {};
  float poison_ = 0;    // what the judge filled the output with
  bool fresh_ = false;  // the output was not used since then
  std::array<PhaseWork, 3> work_ = {};
};

absl::Status KernelSide::Prepare(Reply& reply) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The first to go if the machine runs out of memory.
  if (std::FILE* const file = std::fopen("/proc/self/oom_score_adj", "we")) {
    std::fputs("1000", file);
    std::fclose(file);
  }
  if (!KeepNotes(kNoteFile, &tensors_)) {
    return absl::InternalError("no memory is shared with the judge");
  }
  if (arguments_.trace && arguments_.gpu) {
    const absl::Status started = cuda::StartTrace();
    traced_ = started.ok();
    if (!traced_) {
      absl::SNPrintF(reply.text, sizeof(reply.text), "%s", started.message());
    }
  }
  if (arguments_.gpu) {
    ASSIGN_OR_RETURN(device_, KernelDevice::Create(arguments_.device));
  }
  if (!arguments_.guard) setenv("CONVLAB_NO_GUARD", "1", /*overwrite=*/1);
  LimitThreads(arguments_.threads);
  reply.limits = LimitProcess(arguments_.data_bytes);
  reply.landlock = arguments_.filter && ForbidWriting();
  reply.seccomp =
      arguments_.filter && FilterSystemCalls(arguments_.threads > 0);
  reply.traced = traced_;
  return absl::OkStatus();
}

absl::Status KernelSide::Load(Reply& reply) {
  void* const library =
      dlopen(arguments_.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::AbortedError(absl::StrCat("cannot be loaded: ", dlerror()));
  }
  using Function = const ConvlabKernel*();
  auto* const function =
      reinterpret_cast<Function*>(dlsym(library, "convlab_kernel"));
  if (function == nullptr) {
    return absl::AbortedError("has no function convlab_kernel()");
  }
  NameFunctionsOf(reinterpret_cast<const void*>(function));
  kernel_ = function();
  if (kernel_ == nullptr || kernel_->op == nullptr) {
    return absl::AbortedError("convlab_kernel() describes no kernel");
  }
  if (kernel_->abi != CONVLAB_KERNEL_ABI) {
    return absl::AbortedError(absl::StrCat(
        "was made for version ", kernel_->abi,
        " of kernels/judge/source/abi.h; expected ", CONVLAB_KERNEL_ABI));
  }
  if (has_device_tensors() && kernel_->uses_gpu == 0) {
    return absl::AbortedError("takes tensors of a GPU that it does not use");
  }
  reply.uses_gpu = kernel_->uses_gpu != 0;
  reply.has_prolog = has_device_tensors() || kernel_->prolog != nullptr;
  reply.has_epilog = has_device_tensors() || kernel_->epilog != nullptr;
  reply.zeroed_output = kernel_->zeroed_output != 0;
  return absl::OkStatus();
}

absl::Status KernelSide::Begin(const KernelCall& call) {
  problem_ = call.problem;
  call_ = {};
  call_.batch = static_cast<int>(problem_.batch);
  call_.channels = static_cast<int>(problem_.channels);
  call_.height = static_cast<int>(problem_.height);
  call_.width = static_cast<int>(problem_.width);
  call_.filters = static_cast<int>(problem_.filters);
  call_.kernel_size = static_cast<int>(problem_.kernel_size);
  call_.stride = call.stride;
  call_.host_x = tensors_.x();
  call_.host_k = tensors_.k();
  call_.host_y = tensors_.y();
  poison_ = tensors_.y()[0];
  fresh_ = true;
  work_ = {};
  if (!has_device_tensors()) return absl::OkStatus();
  return device_->Allocate(problem_, call_);
}

// Waits for what may still run and files it under the phase that has ended.
absl::Status KernelSide::Settle(const Request& request) {
  if (device_ != nullptr) RETURN_IF_ERROR(device_->Settle());
  if (traced_) {
    ASSIGN_OR_RETURN(Activities activities, cuda::StopTrace());
    if (request.phase >= 0) {
      Add(activities, work_[request.phase]);
      Keep(std::move(activities));
    }
  }
  // Not traced: this is not the kernel's work.
  if (request.before_op != 0) RETURN_IF_ERROR(MakeOutput());
  if (!traced_) return absl::OkStatus();
  trace_ns_ = Now();
  return cuda::StartTrace();
}

void KernelSide::Keep(Activities activities) {
  if (first_trace_ns_ == 0) first_trace_ns_ = trace_ns_;
  const int64_t offset = trace_ns_ - first_trace_ns_;
  for (GpuActivity& activity : activities.gpu) {
    activity.start_ns += offset;
    activity.end_ns += offset;
    kept_.gpu.push_back(std::move(activity));
  }
  for (ApiCall& call : activities.api) {
    call.start_ns += offset;
    call.end_ns += offset;
    kept_.api.push_back(std::move(call));
  }
  kept_.tool = activities.tool;
  kept_.version = activities.version;
  kept_.process = activities.process;
  if (kept_.missing.empty()) kept_.missing = activities.missing;
}

// Every op finds the output poisoned or, if it was promised, zeroed; not only
// the first of a call.
absl::Status KernelSide::MakeOutput() {
  if (has_device_tensors()) {
    return device_->PrepareOp(kernel_->zeroed_output != 0);
  }
  // The judge has filled it for the first op. With a prolog, what is in host
  // memory is not op's output.
  if (kernel_->prolog == nullptr && !fresh_) {
    std::fill_n(call_.host_y, problem_.output_elements(), poison_);
  }
  fresh_ = false;
  return absl::OkStatus();
}

// Runs code of the kernel.
absl::Status KernelSide::Call(void (*function)(ConvlabCall*)) {
  try {
    if (function != nullptr) function(&call_);
  } catch (...) {
    return absl::AbortedError(DescribeException());
  }
  return absl::OkStatus();
}

absl::Status KernelSide::Prolog() {
  if (has_device_tensors()) return device_->Upload(call_);
  return Call(kernel_->prolog);
}

absl::Status KernelSide::Op(Reply& reply) {
  reply.event_ns = -1;
  absl::Status status;
  if (device_ != nullptr) {
    RETURN_IF_ERROR(device_->Time(
        call_, [&] { status = Call(kernel_->op); }, Now, &reply.op_ns,
        &reply.event_ns));
    return status;
  }
  const int64_t start = Now();
  status = Call(kernel_->op);
  reply.op_ns = Now() - start;
  return status;
}

absl::Status KernelSide::Epilog() {
  if (has_device_tensors()) return device_->Download(call_);
  RETURN_IF_ERROR(Call(kernel_->epilog));
  return device_ == nullptr ? absl::OkStatus() : device_->Settle();
}

absl::Status KernelSide::Report(Reply& reply) {
  std::string damage;
  if (has_device_tensors()) {
    RETURN_IF_ERROR(device_->CheckInputs());
    ASSIGN_OR_RETURN(damage, device_->CheckZones());
    reply.device_bytes = device_->allocated_bytes();
  }
  if (kernel_->guard != nullptr) {
    ConvlabGuardReport report = {};
    kernel_->guard(&report);
    reply.device_bytes += report.peak_bytes;
    reply.leaked_bytes = report.leaked_bytes;
    if (report.error != nullptr) {
      absl::SNPrintF(reply.error, sizeof(reply.error), "%s", report.error);
    }
    if (damage.empty() && report.damaged_zones > 0) {
      damage = absl::StrCat(
          "wrote ", DescribePlace("an allocation", report.damaged_offset),
          " of ", report.damaged_bytes, " bytes in device memory");
    }
  }
  std::copy(work_.begin(), work_.end(), reply.work);
  reply.traced = traced_;
  absl::SNPrintF(reply.text, sizeof(reply.text), "%s", damage);
  return absl::OkStatus();
}

absl::Status KernelSide::Carry(const Request& request, int file, Reply& reply) {
  switch (request.order) {
    case Order::kLoad:
      return Load(reply);
    case Order::kMap:
      if (file >= 0) RETURN_IF_ERROR(tensors_.Map(request.room, file));
      return tensors_.Place(request.call.problem);
    case Order::kBegin:
      return Begin(request.call);
    case Order::kSettle:
      return Settle(request);
    case Order::kProlog:
      return Prolog();
    case Order::kOp:
      return Op(reply);
    case Order::kEpilog:
      return Epilog();
    case Order::kReport:
      return Report(reply);
    case Order::kTraced:
      return WriteActivities(kept_, file);
    case Order::kReady:
      break;
  }
  return absl::InternalError("unknown order");
}

// False if the judge, or the connection to it, is gone. `file` is -1 if none
// came along.
bool Receive(Request* request, int* file) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec data = {request, sizeof(*request)};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t count;
  do {
    count = recvmsg(kSocket, &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  *file = -1;
  if (const cmsghdr* const part = CMSG_FIRSTHDR(&message);
      part != nullptr && part->cmsg_type == SCM_RIGHTS) {
    std::memcpy(file, CMSG_DATA(part), sizeof(*file));
  }
  return count == sizeof(*request);
}

void Send(Reply& reply, const absl::Status& status) {
  if (!status.ok()) {
    reply.code = static_cast<int32_t>(status.code());
    reply.broke_rule = FaultOf(status) == Fault::kBrokeRule;
    absl::SNPrintF(reply.text, sizeof(reply.text), "%s", status.message());
  }
  if (send(kSocket, &reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply)) {
    NoteText("closed its connection to the judge");
    _exit(1);
  }
}

void KernelSide::Serve() {
  Reply ready = {};
  ready.order = Order::kReady;
  Send(ready, Prepare(ready));
  Request request;
  int file;
  while (Receive(&request, &file)) {
    Reply reply = {};
    reply.token = request.token;
    reply.order = request.order;
    const absl::Status status = Carry(request, file, reply);
    if (file >= 0) close(file);
    // The process may be killed before anything else flushes this.
    std::fflush(stdout);
    Send(reply, status);
  }
  // A profiler writes its results when the process ends in order.
  if (!arguments_.filter) std::exit(0);
  _exit(1);
}

}  // namespace

void RunAsKernelProcessIfAsked(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], kProcessArgument) != 0) return;
  ProcessArguments arguments;
  int type = 0;
  socklen_t size = sizeof(type);
  if (!arguments.Read(argc, argv) ||
      getsockopt(kSocket, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
      type != SOCK_SEQPACKET) {
    std::fprintf(stderr, "%s is for Convlab's own use\n", kProcessArgument);
    _exit(2);
  }
  KernelSide(std::move(arguments)).Serve();
}

}  // namespace convlab
