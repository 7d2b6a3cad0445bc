#include "kernels/judge/process/last_words.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/judge/process/fault.h"

namespace convlab {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS,  SIGILL, SIGFPE,
                            SIGABRT, SIGTRAP, SIGSYS, SIGXFSZ};

// Of the kernel's process, for its handlers.
Note* g_note = nullptr;
const GuardedTensors* g_tensors = nullptr;
const void* g_library = nullptr;

void Store(absl::string_view text, char* target, size_t size) {
  const size_t count = std::min(text.size(), size - 1);
  std::memcpy(target, text.data(), count);
  target[count] = 0;
}

// The innermost function of the library on this thread's stack.
void NoteFunction() {
  if (g_library == nullptr) return;
  void* frames[48];
  const int count = backtrace(frames, 48);
  for (int i = 0; i < count; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) != 0 && info.dli_fbase == g_library &&
        info.dli_sname != nullptr) {
      Store(info.dli_sname, g_note->function, sizeof(g_note->function));
      return;
    }
  }
}

void OnSignal(int signal, siginfo_t* info, void* context) {
  Note& note = *g_note;
  note.signal = signal;
  if (signal == SIGSYS) note.system_call = info->si_syscall;
  if (signal == SIGSEGV || signal == SIGBUS) {
    int tensor;
    int64_t distance;
    if (g_tensors->Near(info->si_addr, &tensor, &distance)) {
      note.tensor = tensor;
      note.distance = distance;
    }
#ifdef __x86_64__
    // Bit 1 of a page fault's error code says that it was a write.
    const auto* state = static_cast<const ucontext_t*>(context);
    note.writing = (state->uc_mcontext.gregs[REG_ERR] >> 1) & 1;
#else
    static_cast<void>(context);
#endif
  }
  NoteFunction();
  // What the kernel printed is worth a try. A second signal, or a wait for
  // another thread, is beyond help: the first ends the process, the judge's
  // clock the second.
  fflush_unlocked(stdout);
  syscall(SYS_exit_group, 128 + signal);
}

void OnExit(int status, void*) {
  g_note->exited = 1;
  g_note->exit_status = status;
}

[[noreturn]] void OnTerminate() {
  if (std::current_exception() != nullptr) {
    try {
      throw;
    } catch (...) {
      NoteText(DescribeException());
    }
  }
  std::abort();
}

std::string SignalName(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name == nullptr ? absl::StrCat("signal ", signal)
                         : absl::StrCat("SIG", name);
}

// What a refused system call means to the one who wrote the kernel.
std::string DescribeSystemCall(int number) {
  switch (number) {
#ifdef SYS_fork
    case SYS_fork:
    case SYS_vfork:
#endif
    case SYS_clone:
      return "started a process";
    case SYS_execve:
    case SYS_execveat:
      return "started a program";
    case SYS_kill:
    case SYS_tkill:
    case SYS_tgkill:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
    case SYS_pidfd_send_signal:
      return "sent a signal to another process";
    case SYS_ptrace:
    case SYS_process_vm_readv:
    case SYS_process_vm_writev:
    case SYS_pidfd_open:
    case SYS_pidfd_getfd:
    case SYS_kcmp:
      return "reached for another process";
    case SYS_prlimit64:
      return "changed the limits of a process";
    case SYS_socket:
      return "opened a network connection";
    default:
      return absl::StrCat("made system call ", number,
                          ", which a kernel may not make");
  }
}

// The names in a mangled name, without parameters: "A::f" for _ZN1A1fEv. The
// demangler of the C++ library is not made for hostile input.
std::string Demangle(const std::string& name) {
  if (name.rfind("_Z", 0) != 0) return name;
  std::vector<std::string> parts;
  size_t at = 2;
  while (at < name.size() && std::strchr("NLKrV", name[at]) != nullptr) ++at;
  while (at < name.size() && absl::ascii_isdigit(name[at])) {
    size_t length = 0;
    while (at < name.size() && absl::ascii_isdigit(name[at])) {
      length = std::min<size_t>(10 * length + (name[at++] - '0'), name.size());
    }
    if (length == 0 || at + length > name.size()) break;
    std::string part = name.substr(at, length);
    at += length;
    parts.push_back(part.rfind("_GLOBAL__N", 0) == 0 ? "(anonymous)"
                                                     : std::move(part));
  }
  return parts.empty() ? name : absl::StrJoin(parts, "::");
}

absl::Status EndBySignal(const Note& note, int signal) {
  std::string text = absl::StrCat(signal == SIGABRT ? "aborted" : "crashed",
                                  " (", SignalName(signal), ")");
  const std::string function = Harmless(note.function);
  if (!function.empty()) absl::StrAppend(&text, " in ", Demangle(function));
  if (note.tensor >= 0 && note.tensor < 3) {
    absl::StrAppend(&text, ": ",
                    note.writing == 1   ? "wrote "
                    : note.writing == 0 ? "read "
                                        : "touched ",
                    DescribePlace(kTensorNames[note.tensor], note.distance));
  }
  return KernelFault(signal == SIGABRT ? Fault::kAborted : Fault::kEnded, text);
}

}  // namespace

absl::StatusOr<NotePage> NotePage::Create() {
  const int file = memfd_create("note", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0 || ftruncate(file, sizeof(Note)) != 0 ||
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
          0) {
    if (file >= 0) close(file);
    return absl::InternalError("no memory can be shared with a process");
  }
  void* const page =
      mmap(nullptr, sizeof(Note), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) {
    close(file);
    return absl::ResourceExhaustedError("no memory for a process's note");
  }
  return NotePage(file, new (page) Note);
}

NotePage::NotePage(NotePage&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      note_(std::exchange(other.note_, nullptr)) {}

NotePage::~NotePage() {
  if (note_ != nullptr) munmap(const_cast<Note*>(note_), sizeof(Note));
  if (file_ >= 0) close(file_);
}

Note NotePage::Read() const {
  Note note = *note_;
  note.function[sizeof(note.function) - 1] = 0;
  note.text[sizeof(note.text) - 1] = 0;
  return note;
}

absl::Status EndOf(const Note& note, int wait_status) {
  const auto ended = [](absl::string_view text) {
    return KernelFault(Fault::kEnded, text);
  };
  if (note.system_call >= 0) return ended(DescribeSystemCall(note.system_call));
  if (note.text[0] != 0) return ended(Harmless(note.text));
  if (note.signal != 0) return EndBySignal(note, note.signal);
  if (note.exited != 0) {
    return ended(absl::StrCat("called exit(", note.exit_status, ")"));
  }
  const int status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
  const int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status)
                     : status > 128           ? status - 128
                                              : 0;
  // The C library's system() and popen() block all signals, the handler's too.
  if (signal == SIGSYS) {
    return ended(
        "made a system call that a kernel may not make, such as to start a "
        "program");
  }
  if (signal == SIGKILL) return ended("was killed (SIGKILL)");
  if (signal != 0) return EndBySignal(note, signal);
  return ended(absl::StrCat("called _exit(", status, ")"));
}

std::string Harmless(absl::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = ' ';
  }
  absl::RemoveExtraAsciiWhitespace(&result);
  return result;
}

bool KeepNotes(int file, const GuardedTensors* tensors) {
  void* const page =
      mmap(nullptr, sizeof(Note), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) return false;
  close(file);
  g_note = static_cast<Note*>(page);
  g_tensors = tensors;
  // Loads what backtrace() needs.
  void* frame;
  backtrace(&frame, 1);
  // A stack of its own for the handler, which may be called because the other
  // one is full. Never freed.
  constexpr size_t kStack = 256 << 10;
  stack_t stack = {};
  stack.ss_sp = mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack.ss_size = kStack;
  if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, nullptr) != 0) {
    return false;
  }
  struct sigaction action = {};
  action.sa_sigaction = OnSignal;
  // A signal in the handler has its usual effect.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  for (const int signal : kSignals) {
    if (sigaction(signal, &action, nullptr) != 0) return false;
  }
  std::set_terminate(OnTerminate);
  return on_exit(OnExit, nullptr) == 0;
}

void NoteText(absl::string_view text) {
  Store(text, g_note->text, sizeof(g_note->text));
}

void NameFunctionsOf(const void* address_in_library) {
  Dl_info info;
  if (dladdr(address_in_library, &info) != 0) g_library = info.dli_fbase;
}

std::string DescribeException() {
  std::string text = "threw ";
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type == nullptr) return absl::StrCat(text, "an exception");
  int status = 0;
  char* const name =
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  absl::StrAppend(&text, status == 0 ? name : type->name());
  std::free(name);
  try {
    throw;
  } catch (const std::exception& exception) {
    absl::StrAppend(&text, ": ", exception.what());
  } catch (...) {
  }
  return text;
}

}  // namespace convlab
