// Runs a program and makes one of its system calls fail:
//
//   system_calls KIND FAULT AT[+] LOG PROGRAM ARGUMENTS...
//
// KIND says which calls are counted: read, write (but to standard error, or
// nothing could be told), name (what makes and renames files), open, wait,
// thread, map. FAULT is "short" (a read or write gets fewer bytes than it asks
// for) or the name of an error, such as ENOSPC.
// The call with the number AT fails, and all after it if a plus follows; none
// does if it is 0. The number of calls is written to LOG. Exits as the program
// does, also by its signal.
//
// The kernel stops the program at these calls alone (seccomp), so that it runs
// at its usual speed. Calls of all its threads count, those of programs that it
// starts do not, nor do those of the loader before the program begins.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

// clone3 is refused as unknown, so that the C library uses clone.
const std::map<std::string, std::vector<int>> kKinds = {
    {"read", {SYS_read, SYS_pread64, SYS_readv}},
    {"write", {SYS_write, SYS_pwrite64, SYS_writev}},
    {"name",
     {SYS_mkdir, SYS_mkdirat, SYS_rename, SYS_renameat, SYS_renameat2, SYS_link,
      SYS_symlink, SYS_ftruncate, SYS_fsync, SYS_fdatasync, SYS_fallocate,
      SYS_fchmod}},
    {"open", {SYS_open, SYS_openat}},
    // Without close, which on Linux closes even where it was interrupted; a
    // call that is refused here is not made.
    {"wait",
     {SYS_poll, SYS_ppoll, SYS_wait4, SYS_waitid, SYS_nanosleep,
      SYS_clock_nanosleep, SYS_flock, SYS_connect, SYS_recvmsg, SYS_sendmsg,
      SYS_select, SYS_pselect6}},
    {"thread", {SYS_clone, SYS_fork, SYS_vfork, SYS_pipe, SYS_pipe2}},
    {"map", {SYS_mmap, SYS_mremap}},
};

const std::map<std::string, int> kErrors = {
    {"ENOSPC", ENOSPC}, {"EINTR", EINTR},   {"EIO", EIO},
    {"EMFILE", EMFILE}, {"EAGAIN", EAGAIN}, {"ENOMEM", ENOMEM},
    {"EDQUOT", EDQUOT}, {"EACCES", EACCES},
};

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "system_calls: %s: %s\n", what.c_str(),
               std::strerror(errno));
  std::exit(125);
}

// Stops at the calls, lets all others pass.
void InstallFilter(const std::vector<int>& calls) {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int call : calls) {
    filter.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
  }
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog program = {static_cast<unsigned short>(filter.size()),
                        filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    Fail("seccomp");
  }
}

// The addresses of the loader's code in the process.
struct Range {
  unsigned long long begin = 0, end = 0;
};
Range FindLoader(pid_t process) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  Range range;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/ld-linux") == std::string::npos) continue;
    Range part;
    std::sscanf(line.c_str(), "%llx-%llx", &part.begin, &part.end);
    if (range.end == 0) range.begin = part.begin;
    range.end = part.end;
  }
  return range;
}

class Injector {
 public:
  Injector(pid_t process, std::string fault, long first, long last)
      : process_(process),
        fault_(std::move(fault)),
        first_(first),
        last_(last) {}

  // Serves the program's stops until it ends; returns its wait status.
  int Run() {
    for (;;) {
      int status = 0;
      const pid_t thread = waitpid(-1, &status, __WALL);
      if (thread < 0) {
        if (errno == EINTR) continue;
        Fail("waitpid");
      }
      if (!WIFSTOPPED(status)) {
        if (thread == process_) return status;
        continue;
      }
      const int event = status >> 16;
      int signal = 0;
      if (event == PTRACE_EVENT_SECCOMP) {
        if (IsOurs(thread)) Serve(thread);
      } else if (event == 0) {
        signal = WSTOPSIG(status);
        // A new thread begins with a stop, that of a tracer is no signal.
        if (signal == SIGSTOP && seen_.insert(thread).second) signal = 0;
      }
      ptrace(PTRACE_CONT, thread, 0, signal);
    }
  }

  long count() const { return count_; }

 private:
  // Whether it is a thread of the program and not of one that it started.
  bool IsOurs(pid_t thread) {
    const auto known = ours_.find(thread);
    if (known != ours_.end()) return known->second;
    const bool ours =
        thread == process_ || access(("/proc/" + std::to_string(process_) +
                                      "/task/" + std::to_string(thread))
                                         .c_str(),
                                     F_OK) == 0;
    return ours_[thread] = ours;
  }

  void Serve(pid_t thread) {
    user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, thread, 0, &registers) != 0) return;
    if (!begun_) {
      if (loader_.end == 0) loader_ = FindLoader(process_);
      begun_ = registers.rip < loader_.begin || registers.rip >= loader_.end;
      if (!begun_) return;
    }
    const auto call = static_cast<int>(registers.orig_rax);
    const bool writes =
        call == SYS_write || call == SYS_pwrite64 || call == SYS_writev;
    if (writes && registers.rdi == STDERR_FILENO) return;
    ++count_;
    if (count_ < first_ || count_ > last_) return;
    if (fault_ == "short") {
      // Bytes, or the parts of a vector.
      const bool vector = call == SYS_readv || call == SYS_writev;
      registers.rdx =
          std::min<unsigned long long>(registers.rdx, vector ? 1 : 61);
    } else {
      registers.orig_rax = static_cast<unsigned long long>(-1);
      registers.rax = static_cast<unsigned long long>(-kErrors.at(fault_));
    }
    ptrace(PTRACE_SETREGS, thread, 0, &registers);
  }

  const pid_t process_;
  const std::string fault_;
  const long first_, last_;
  long count_ = 0;
  bool begun_ = false;
  Range loader_;
  std::map<pid_t, bool> ours_;
  std::set<pid_t> seen_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6 || kKinds.count(argv[1]) == 0 ||
      (kErrors.count(argv[2]) == 0 && std::strcmp(argv[2], "short") != 0)) {
    std::fputs(
        "system_calls: expected KIND FAULT AT[+] LOG PROGRAM ARGUMENTS...\n",
        stderr);
    return 125;
  }
  char* end = nullptr;
  const long first = std::strtol(argv[3], &end, 10);
  const long last = *end == '+' ? LONG_MAX : first;
  const pid_t process = fork();
  if (process == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    InstallFilter(kKinds.at(argv[1]));
    execvp(argv[5], argv + 5);
    Fail(argv[5]);
  }
  int status = 0;
  if (process < 0 || waitpid(process, &status, 0) != process) Fail("fork");
  ptrace(PTRACE_SETOPTIONS, process, 0,
         PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
             PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
  ptrace(PTRACE_CONT, process, 0, 0);
  Injector injector(process, argv[2], first, last);
  status = injector.Run();
  std::ofstream(argv[4]) << injector.count() << "\n";
  if (WIFSIGNALED(status)) {
    // Dies of the same, and leaves no second memory image.
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    kill(getpid(), WTERMSIG(status));
  }
  return WEXITSTATUS(status);
}
