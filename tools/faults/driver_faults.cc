// Loaded before a program (LD_PRELOAD), makes calls of the CUDA driver fail,
// and with them those of the runtime and of cuDNN and cuBLAS that make them:
//
//   CONVLAB_FAULT=7    the seventh fails
//   CONVLAB_FAULT=7+   the seventh and all that follow fail
//   CONVLAB_FAULT=0    none fails
//   CONVLAB_FAULT_GPU=1  of those with a context of this device as the current
//     one; others are not counted
//   CONVLAB_FAULT_LOG=FILE  gets, when the program ends, how many there were,
//     and the numbers of those whose stack of calls was new, one a line
//
// All of them get the driver's functions from one function of it,
// cuGetProcAddress, whose address they look up by name. Here both answer with a
// piece of code for each function, which counts the call, and refuses it or
// goes on to the driver. For 64-bit x86.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <unwind.h>

#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

constexpr int kMostFunctions = 2048;
constexpr size_t kEntryBytes = 16;  // of the code below

// CUDA_ERROR_OUT_OF_MEMORY; after a kernel that reads where it must not, all
// calls fail with CUDA_ERROR_ILLEGAL_ADDRESS.
constexpr int kOutOfMemory = 2, kIllegalAddress = 700;

struct State {
  std::mutex mutex;
  long first_failing = 0, last_failing = 0, count = 0;
  int failing_device = -1;  // -1: any
  std::string log;
  std::set<uint64_t> stacks;
  std::vector<long> first_calls;
  std::vector<std::string> names;
};

State& TheState() {
  static State* const state = new State;
  return *state;
}

_Unwind_Reason_Code AddFrame(_Unwind_Context* context, void* hash) {
  auto& value = *static_cast<uint64_t*>(hash);
  value = (value ^ _Unwind_GetIP(context)) * 0x9e3779b97f4a7c15u;
  value ^= value >> 29;
  return _URC_NO_REASON;
}

__attribute__((constructor)) void Begin() {
  State& state = TheState();
  const char* const fault = getenv("CONVLAB_FAULT");
  if (fault == nullptr) return;
  char* end = nullptr;
  state.first_failing = strtol(fault, &end, 10);
  state.last_failing = *end == '+' ? LONG_MAX : state.first_failing;
  if (const char* const gpu = getenv("CONVLAB_FAULT_GPU")) {
    state.failing_device = atoi(gpu);
  }
  if (const char* const path = getenv("CONVLAB_FAULT_LOG")) state.log = path;
  unsetenv("LD_PRELOAD");
}

__attribute__((destructor)) void End() {
  State& state = TheState();
  if (state.log.empty()) return;
  const int file = open(state.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0) return;
  dprintf(file, "%ld\n", state.count);
  for (const long call : state.first_calls) dprintf(file, "%ld\n", call);
  close(file);
}

using GetProcAddress = int (*)(const char*, void**, int, uint64_t, void*);
GetProcAddress get_proc_address = nullptr;

// A function of the driver, or code in front of it.
void* Wrap(const char* name, void* function);

int GetWrapped(const char* name, void** function, int version, uint64_t flags,
               void* status) {
  const int error = get_proc_address(name, function, version, flags, status);
  if (error == 0 && function != nullptr && *function != nullptr) {
    *function = Wrap(name, *function);
  }
  return error;
}

// That of the thread's current context; -1: it has none.
int CurrentDevice() {
  using GetDevice = int (*)(int*);
  static const auto get = [] {
    constexpr int kVersion = 2000;  // CUDA's, since which it is there
    void* found = nullptr;
    get_proc_address("cuCtxGetDevice", &found, kVersion, 0, nullptr);
    return reinterpret_cast<GetDevice>(found);
  }();
  int device = -1;
  return get != nullptr && get(&device) == 0 ? device : -1;
}

}  // namespace

extern "C" {

// The driver's functions, by the number of their code.
void* convlab_driver_functions[kMostFunctions];

// What a call has to return; 0: it goes on to the driver.
int ConvlabDriverFault() {
  State& state = TheState();
  if (state.failing_device >= 0 && state.failing_device != CurrentDevice()) {
    return 0;
  }
  const std::lock_guard<std::mutex> lock(state.mutex);
  ++state.count;
  if (!state.log.empty()) {
    uint64_t stack = 1;
    _Unwind_Backtrace(AddFrame, &stack);
    if (state.stacks.insert(stack).second) {
      state.first_calls.push_back(state.count);
    }
  }
  if (state.count < state.first_failing || state.count > state.last_failing) {
    return 0;
  }
  return state.last_failing > state.first_failing ? kIllegalAddress
                                                  : kOutOfMemory;
}

extern const char convlab_driver_entries[];
}

// One entry for each function: its number, and on to what all have in common,
// which leaves registers and stack as the driver expects them.
asm(R"(
  .text
  .p2align 4
  .globl convlab_driver_entries
convlab_driver_entries:
  .cfi_startproc
  .set number, 0
  .rept 2048
    .p2align 4
    movl $number, %eax
    jmp convlab_driver_common
    .set number, number + 1
  .endr
  .cfi_endproc
  .p2align 4
convlab_driver_common:
  .cfi_startproc
  push %rbx
  .cfi_adjust_cfa_offset 8
  push %rdi
  .cfi_adjust_cfa_offset 8
  push %rsi
  .cfi_adjust_cfa_offset 8
  push %rdx
  .cfi_adjust_cfa_offset 8
  push %rcx
  .cfi_adjust_cfa_offset 8
  push %r8
  .cfi_adjust_cfa_offset 8
  push %r9
  .cfi_adjust_cfa_offset 8
  mov %eax, %ebx
  call ConvlabDriverFault@PLT
  mov convlab_driver_functions@GOTPCREL(%rip), %r11
  mov (%r11, %rbx, 8), %r11
  pop %r9
  .cfi_adjust_cfa_offset -8
  pop %r8
  .cfi_adjust_cfa_offset -8
  pop %rcx
  .cfi_adjust_cfa_offset -8
  pop %rdx
  .cfi_adjust_cfa_offset -8
  pop %rsi
  .cfi_adjust_cfa_offset -8
  pop %rdi
  .cfi_adjust_cfa_offset -8
  pop %rbx
  .cfi_adjust_cfa_offset -8
  test %eax, %eax
  jnz 1f
  jmp *%r11
1:
  ret
  .cfi_endproc
)");

namespace {

void* Wrap(const char* name, void* function) {
  // They tell of errors, or of the driver's insides to the runtime, which does
  // not expect to be refused.
  for (const char* left :
       {"cuGetErrorString", "cuGetErrorName", "cuGetExportTable"}) {
    if (std::strcmp(name, left) == 0) return function;
  }
  if (std::strncmp(name, "cuGetProcAddress", 16) == 0) {
    return reinterpret_cast<void*>(GetWrapped);
  }
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  size_t i = 0;
  while (i < state.names.size() && convlab_driver_functions[i] != function) ++i;
  if (i == kMostFunctions) return function;
  if (i == state.names.size()) {
    state.names.emplace_back(name);
    convlab_driver_functions[i] = function;
  }
  return const_cast<char*>(convlab_driver_entries) + kEntryBytes * i;
}

}  // namespace

// Answers for the driver's one function, and as usual for all others.
extern "C" void* dlsym(void* handle, const char* name) noexcept {
  static const auto next = reinterpret_cast<void* (*)(void*, const char*)>(
      dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
  void* const found = next(handle, name);
  if (found == nullptr || std::strcmp(name, "cuGetProcAddress_v2") != 0) {
    return found;
  }
  get_proc_address = reinterpret_cast<GetProcAddress>(found);
  return reinterpret_cast<void*>(GetWrapped);
}
