#include "kernels/judge/process/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files/process_stat.h"
#include "common/record/seal.h"
#include "common/status/status.h"

namespace convlab {
namespace {

constexpr size_t kPrintedBytes = 64 << 10;
constexpr int64_t kTickNs = 20'000'000;  // between two looks at memory
constexpr int kThreads = 2000;           // more are a bomb
constexpr double kNoticeSeconds = 1;     // between two notices of a wait

absl::Status Failed(const char* call) {
  return absl::InternalError(absl::StrCat(
      "cannot start a kernel's process: ", call, ": ", std::strerror(errno)));
}

void Sleep(int64_t ns) {
  const timespec time = {0, static_cast<long>(ns)};
  nanosleep(&time, nullptr);
}

// Between fork and exec; nothing here allocates memory.
[[noreturn]] void Become(char* const* command, char* const* environment,
                         int socket, int note, int output) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // Out of the way of the numbers that they get.
  socket = fcntl(socket, F_DUPFD, 16);
  note = fcntl(note, F_DUPFD, 16);
  output = fcntl(output, F_DUPFD, 16);
  const int input = open("/dev/null", O_RDONLY);
  if (socket >= 0 && note >= 0 && output >= 0 && input >= 0 &&
      dup2(input, 0) >= 0 && dup2(output, 1) >= 0 && dup2(output, 2) >= 0 &&
      dup2(socket, kSocket) >= 0 && dup2(note, kNoteFile) >= 0) {
    if (syscall(SYS_close_range, kNoteFile + 1, ~0U, 0) != 0) {
      const long count = sysconf(_SC_OPEN_MAX);
      for (int i = kNoteFile + 1; i < count; ++i) close(i);
    }
    execve(command[0], command, environment);
  }
  _exit(127);
}

// This process's, without what a kernel could seal results of its own with.
std::vector<char*> Environment() {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!absl::StartsWith(*variable, absl::StrCat(kSealKeyVariable, "="))) {
      variables.push_back(*variable);
    }
  }
  variables.push_back(nullptr);
  return variables;
}

// The whole of a file below /proc, or as much of it as matters.
std::string ReadProc(const std::string& path) {
  char text[1024];
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  const ssize_t count = read(file, text, sizeof(text));
  close(file);
  return std::string(text, std::max<ssize_t>(count, 0));
}

// Whether no thread of a process can run. True too if there is none.
bool AllStopped(pid_t process) {
  const std::string folder = absl::StrCat("/proc/", process, "/task");
  DIR* const tasks = opendir(folder.c_str());
  if (tasks == nullptr) return true;
  bool stopped = true;
  while (const dirent* task = readdir(tasks)) {
    if (std::isdigit(static_cast<unsigned char>(task->d_name[0])) == 0) {
      continue;
    }
    const std::string stat =
        ReadProc(absl::StrCat(folder, "/", task->d_name, "/stat"));
    const absl::string_view state = FieldsBehindName(stat);
    stopped &= state.empty() || std::strchr("TtZX", state[0]) != nullptr;
  }
  closedir(tasks);
  return stopped;
}

int64_t WaitedOf(const std::string& task) {
  long long waited = 0;
  if (std::sscanf(ReadProc(absl::StrCat("/proc/", task, "/schedstat")).c_str(),
                  "%*d %lld", &waited) != 1) {
    return 0;
  }
  return waited;
}

struct Resident {
  int64_t bytes, shared_bytes;
};

Resident ResidentOf(pid_t process) {
  long long pages = 0, shared = 0;
  std::sscanf(ReadProc(absl::StrCat("/proc/", process, "/statm")).c_str(),
              "%*d %lld %lld", &pages, &shared);
  const int64_t page = sysconf(_SC_PAGESIZE);
  return {pages * page, shared * page};
}

}  // namespace

int64_t JudgeNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

absl::StatusOr<std::unique_ptr<Child>> Child::Start(
    const std::vector<std::string>& command) {
  ASSIGN_OR_RETURN(NotePage note, NotePage::Create());
  int ends[2], output[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Failed("socketpair");
  }
  if (pipe2(output, O_CLOEXEC) != 0) {
    close(ends[0]);
    close(ends[1]);
    return Failed("pipe2");
  }
  // The system then says which process a message is from.
  const int on = 1;
  setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
  fcntl(output[0], F_SETFL, O_NONBLOCK);
  std::vector<std::string> words = command;
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::vector<char*> environment = Environment();
  const pid_t pid = fork();
  if (pid == 0) {
    Become(pointers.data(), environment.data(), ends[1], note.file(),
           output[1]);
  }
  close(ends[1]);
  close(output[1]);
  if (pid < 0) {
    close(ends[0]);
    close(output[0]);
    return Failed("fork");
  }
  setpgid(pid, pid);  // both sides do it, so that neither can be too early
  return std::unique_ptr<Child>(
      new Child(pid, ends[0], output[0], std::move(note)));
}

Child::~Child() {
  Kill();
  close(socket_);
  close(output_);
}

void Child::SetLimits(int64_t resident_bytes, double seconds) {
  resident_bytes_ = resident_bytes;
  seconds_ = seconds;
}

void Child::SetListener(std::function<void(double seconds)> waiting,
                        double patience) {
  waiting_ = std::move(waiting);
  patience_ = patience;
}

absl::Status Child::Send(const Request& request, int file) {
  if (dead()) return absl::AbortedError("its process has ended");
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(file))] = {};
  iovec data = {const_cast<Request*>(&request), sizeof(request)};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(file));
    std::memcpy(CMSG_DATA(part), &file, sizeof(file));
  }
  // There is room for a message, because the process has answered all others;
  // if it has not read them, it was not it that answered.
  if (sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT) !=
      sizeof(request)) {
    return Ended("does not listen to the judge any more");
  }
  return absl::OkStatus();
}

absl::Status Child::Wait() {
  const auto limit_ns = static_cast<int64_t>(seconds_ * 1e9);
  const int64_t start = JudgeNow();
  int64_t looked = start;
  double notice = patience_;  // seconds from the start to the next one
  const auto tell_end = absl::MakeCleanup([&] {
    if (notice > patience_) waiting_(0);
  });
  pollfd files[2] = {{socket_, POLLIN, 0}, {output_, POLLIN, 0}};
  for (;;) {
    const timespec wait = {0, kTickNs};
    ppoll(files, 2, &wait, nullptr);
    if (files[0].revents != 0) return absl::OkStatus();
    if (files[1].revents != 0) Drain();
    // Closed by the kernel; there is nothing more to come.
    if ((files[1].revents & (POLLHUP | POLLIN)) == POLLHUP) files[1].fd = -1;
    const int64_t now = JudgeNow();
    if (now - start > limit_ns) {
      return Broken(absl::StrFormat("took more than %g s", seconds_),
                    Fault::kTookTooLong);
    }
    if (now - looked >= kTickNs) {
      RETURN_IF_ERROR(CheckUsage());
      looked = now;
    }
    const double seconds = static_cast<double>(now - start) * 1e-9;
    if (waiting_ != nullptr && seconds > notice) {
      waiting_(seconds);
      notice = seconds + kNoticeSeconds;
    }
  }
}

absl::Status Child::Receive(Reply* reply) {
  if (dead()) return absl::AbortedError("its process has ended");
  RETURN_IF_ERROR(Wait());
  // Room for the sender's identity only: descriptors are not taken.
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  iovec data = {reply, sizeof(*reply)};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t count =
      recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count <= 0) return Ended("closed its connection to the judge");
  if (count != sizeof(*reply) || (message.msg_flags & MSG_TRUNC) != 0) {
    return Broken("wrote to the judge's socket", Fault::kBrokeRule);
  }
  if (const cmsghdr* const part = CMSG_FIRSTHDR(&message);
      kernel_ == 0 && part != nullptr && part->cmsg_type == SCM_CREDENTIALS) {
    ucred sender;
    std::memcpy(&sender, CMSG_DATA(part), sizeof(sender));
    kernel_ = sender.pid;
  }
  return absl::OkStatus();
}

absl::Status Child::CheckUsage() {
  const pid_t process = kernel_ > 0 ? kernel_ : pid_;
  if (resident_bytes_ > 0 && ResidentOf(process).bytes > resident_bytes_) {
    return Broken(absl::StrFormat("used more than %.2f GiB of memory",
                                  resident_bytes_ / double{1 << 30}));
  }
  int threads = 0;
  const std::string stat = ReadProc(absl::StrCat("/proc/", process, "/stat"));
  std::sscanf(
      std::string(FieldsBehindName(stat)).c_str(),
      "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d",
      &threads);
  if (threads > kThreads) {
    return Broken(absl::StrCat("started more than ", kThreads, " threads"));
  }
  return absl::OkStatus();
}

void Child::Drain() {
  char text[4096];
  // Bounded, since a kernel may print faster than this reads.
  for (int i = 0; i < 64; ++i) {
    const ssize_t count = read(output_, text, sizeof(text));
    if (count <= 0) return;
    printed_.append(text, std::min(static_cast<size_t>(count),
                                   kPrintedBytes - printed_.size()));
  }
}

const std::string& Child::Printed() {
  Drain();
  return printed_;
}

absl::Status Child::Ended(const char* otherwise) {
  bool ended = false;
  for (int i = 0; i < 200 && !ended; ++i) {
    Drain();  // or it might wait for room in the pipe
    ended = waitpid(pid_, &wait_status_, WNOHANG) == pid_;
    if (!ended) Sleep(5'000'000);
  }
  if (!ended) return Broken(otherwise);
  kill(-pid_, SIGKILL);
  pid_ = -1;
  Drain();
  return EndOf(note_.Read(), wait_status_);
}

absl::Status Child::Broken(const std::string& what, Fault fault) {
  Drain();
  Kill();
  return KernelFault(fault, what);
}

void Child::Kill() {
  if (dead()) return;
  kill(-pid_, SIGKILL);
  // A process that waits for a GPU ends when the driver has cleaned up.
  while (waitpid(pid_, &wait_status_, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  Drain();
}

void Child::Finish(double seconds) {
  if (dead()) return;
  Continue();
  shutdown(socket_, SHUT_WR);
  const int64_t end = JudgeNow() + static_cast<int64_t>(seconds * 1e9);
  while (JudgeNow() < end) {
    Drain();
    if (waitpid(pid_, &wait_status_, WNOHANG) == pid_) {
      // What it started may still run.
      kill(-pid_, SIGKILL);
      pid_ = -1;
      return;
    }
    Sleep(1'000'000);
  }
  Kill();
}

void Child::Stop() {
  if (dead() || kernel_ <= 0) return;
  kill(kernel_, SIGSTOP);
  for (int i = 0; i < 5000 && !AllStopped(kernel_); ++i) Sleep(200'000);
}

void Child::Continue() {
  if (!dead() && kernel_ > 0) kill(kernel_, SIGCONT);
}

int64_t Child::PrivateBytes() const {
  if (dead() || kernel_ <= 0) return 0;
  const Resident resident = ResidentOf(kernel_);
  return resident.bytes - resident.shared_bytes;
}

int64_t Child::WaitedForCpu() const {
  if (dead() || kernel_ <= 0) return 0;
  return WaitedOf("thread-self") +
         WaitedOf(absl::StrCat(kernel_, "/task/", kernel_));
}

}  // namespace convlab
