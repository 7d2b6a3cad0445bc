#include "kernels/judge/process/sandbox.h"

#include <fcntl.h>
#include <glob.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/program/program.h"

namespace convlab {
namespace {

// Caches of compiled code and what a kernel might log; not a full disk.
constexpr rlim_t kFileBytes = rlim_t{64} << 20;

bool Limit(__rlimit_resource resource, rlim_t value) {
  rlimit limit;
  if (getrlimit(resource, &limit) != 0) return false;
  if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < value) return true;
  limit.rlim_cur = limit.rlim_max = value;
  return setrlimit(resource, &limit) == 0;
}

// System calls that no kernel needs, whatever their arguments.
constexpr int kRefused[] = {
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_tkill,
    SYS_socket,
    SYS_setsid,
    SYS_setpgid,
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_chroot,
    SYS_pivot_root,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_add_key,
    SYS_keyctl,
};

std::vector<std::string> GpuDevices() {
  std::vector<std::string> devices;
  glob_t found = {};
  if (glob("/dev/{nvidia*,dxg}", GLOB_BRACE, nullptr, &found) == 0) {
    devices.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return devices;
}

// All that changes a file or a folder, in the first version of Landlock.
constexpr uint64_t kWriting =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
    LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
    LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
    LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
// Since the third version; older headers do not have it.
constexpr uint64_t kTruncate = uint64_t{1} << 14;

bool AllowWriting(int rules, const std::string& path) {
  const int place = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (place < 0) return true;  // what does not exist needs no rule
  const landlock_path_beneath_attr rule = {LANDLOCK_ACCESS_FS_WRITE_FILE,
                                           place};
  const bool added = syscall(SYS_landlock_add_rule, rules,
                             LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
  close(place);
  return added;
}

}  // namespace

bool ForbidWriting() {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0,
                               LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return false;
  landlock_ruleset_attr handled = {};
  handled.handled_access_fs = kWriting;
  if (version >= 2) handled.handled_access_fs |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) handled.handled_access_fs |= kTruncate;
  const int rules = static_cast<int>(
      syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0));
  if (rules < 0) return false;
  std::vector<std::string> places = GpuDevices();
  places.insert(places.end(), {"/dev/null", "/proc/self"});
  bool done = true;
  for (const std::string& place : places) done &= AllowWriting(rules, place);
  done &= syscall(SYS_landlock_restrict_self, rules, 0) == 0;
  close(rules);
  return done;
}

std::vector<std::string> BubblewrapCommand(bool gpu) {
  const std::string program = FindProgram(PlacesOnPath("bwrap"));
  if (program.empty()) return {};
  std::vector<std::string> command = {program,
                                      "--unshare-pid",
                                      "--unshare-net",
                                      "--unshare-ipc",
                                      "--unshare-uts",
                                      "--ro-bind",
                                      "/",
                                      "/",
                                      "--proc",
                                      "/proc",
                                      "--die-with-parent",
                                      "--dev",
                                      "/dev"};
  if (gpu) {
    for (const std::string& device : GpuDevices()) {
      command.insert(command.end(), {"--dev-bind", device, device});
    }
  }
  command.emplace_back("--");
  return command;
}

bool LimitProcess(int64_t data_bytes) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  bool done = syscall(SYS_capset, &header, none) == 0;
  done &= prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  done &= Limit(RLIMIT_CORE, 0);
  done &= Limit(RLIMIT_FSIZE, kFileBytes);
  if (data_bytes > 0) {
    done &= Limit(RLIMIT_DATA, static_cast<rlim_t>(data_bytes));
  }
  return done;
}

void LimitThreads(int threads) {
  cpu_set_t all, some;
  if (threads <= 0 || sched_getaffinity(0, sizeof(all), &all) != 0) return;
  CPU_ZERO(&some);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&some) < threads; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &some);
  }
  sched_setaffinity(0, sizeof(some), &some);
  // Or OpenMP's programs would start as many threads as the machine has.
  setenv("OMP_NUM_THREADS", absl::StrCat(threads).c_str(), /*overwrite=*/1);
}

bool FilterSystemCalls(bool keep_affinity) {
  const std::unique_ptr<void, void (*)(void*)> filter(
      seccomp_init(SCMP_ACT_ALLOW), seccomp_release);
  if (filter == nullptr) return false;
  bool done = true;
  const auto refuse = [&](int call, auto... comparisons) {
    // A call that this architecture does not have needs no rule.
    const int result = seccomp_rule_add(filter.get(), SCMP_ACT_TRAP, call,
                                        sizeof...(comparisons), comparisons...);
    done &= result == 0 || result == -EDOM;
  };
  const auto answer = [&](int call, int error, auto... comparisons) {
    done &= seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(error), call,
                             sizeof...(comparisons), comparisons...) == 0;
  };
  for (const int call : kRefused) refuse(call);
  // A process may signal itself, as abort() does.
  const auto self = static_cast<scmp_datum_t>(getpid());
  for (const int call :
       {SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo}) {
    refuse(call, SCMP_A0(SCMP_CMP_NE, self));
  }
  refuse(SYS_prlimit64, SCMP_A0(SCMP_CMP_NE, 0));
  // Threads are clones too. What clone3 asks for cannot be seen; where it is
  // missing, the C library takes clone.
  refuse(SYS_clone, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  answer(SYS_clone3, ENOSYS);
  // Makes system calls that no filter sees.
  answer(SYS_io_uring_setup, ENOSYS);
  // Would keep the judge from hearing of what was refused, or from ending the
  // process with its own.
  answer(SYS_rt_sigaction, EPERM, SCMP_A0(SCMP_CMP_EQ, SIGSYS));
  answer(SYS_prctl, EPERM, SCMP_A0(SCMP_CMP_EQ, PR_SET_PDEATHSIG));
  if (keep_affinity) answer(SYS_sched_setaffinity, EPERM);
  return done && seccomp_load(filter.get()) == 0;
}

}  // namespace convlab
