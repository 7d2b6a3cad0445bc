// Loaded before a program (LD_PRELOAD), makes its memory allocations fail,
// which the environment names as for other calls (RefusedCalls, which would
// allocate itself). A place is a stack of calls.
//
// Counting begins with main: before it, NVIDIA's runtime registers kernels and
// does not expect to be refused. Programs that the program starts are left
// alone. Under the address sanitizer the allocations are the sanitizer's, so
// that it finds leaks.
//
// With CONVLAB_FAULT=@7 one run serves many cases, which
// tools/faults/campaign.py names through socket 7. At the allocation of a case
// the program forks. The child's allocation fails, and the child goes on to its
// end, as a program would that was started for this case alone; then the parent
// goes on without a fault. The two share a folder, which the campaign puts back
// after each child, and open files, whose offsets are put back here.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

#include "tools/faults/refused_calls.h"

namespace {

constexpr int kMostStacks = 1 << 16;

bool counting = false;  // set before other threads begin
long first_failing = 0, last_failing = 0;
char log_path[4096];
std::atomic<long> count{0};

// Hashes of the stacks that have been seen, as an open hash table, and the
// allocations in which they were.
std::atomic<uint64_t> stacks[kMostStacks];
long first_with_stack[kMostStacks];
std::atomic<int> stack_count{0};

// What happens while an allocation is looked at is not counted.
thread_local bool looking = false;

void NoteStack(long number) {
  const uint64_t hash = HashOfStack();
  for (size_t i = hash % kMostStacks;; i = (i + 1) % kMostStacks) {
    uint64_t none = 0;
    if (stacks[i].compare_exchange_strong(none, hash)) {
      const int index = stack_count++;
      if (index < kMostStacks / 2) first_with_stack[index] = number;
      return;
    }
    if (none == hash || stack_count >= kMostStacks / 2) return;
  }
}

int campaign = -1;  // a socket, or none

// 7 or 7+ (RefusedCalls).
void SetCase(const char* text) {
  char* end = nullptr;
  first_failing = strtol(text, &end, 10);
  last_failing = *end == '+' ? __LONG_MAX__ : first_failing;
}

// Waits for the campaign's next word; without one there is nothing to do.
void Receive(char (&text)[32]) {
  const ssize_t size = read(campaign, text, sizeof(text) - 1);
  if (size <= 0) _exit(0);
  text[size] = '\0';
}

// The next case is not of an earlier allocation.
void ReceiveCase() {
  char text[32];
  Receive(text);
  SetCase(text);
}

// Where this process is in its open files, which a child moves for both.
class Offsets {
 public:
  // False if that cannot be put back: for a pipe, and for a file that is being
  // written, since the child would write to it and remove it.
  bool Read() {
    DIR* const folder = opendir("/proc/self/fd");
    if (folder == nullptr) return false;
    bool known = true;
    while (const dirent* const entry = readdir(folder)) {
      const int file = atoi(entry->d_name);
      if (entry->d_name[0] == '.' || file == campaign ||
          file == dirfd(folder)) {
        continue;
      }
      const off_t offset = lseek(file, 0, SEEK_CUR);
      const bool read_only = (fcntl(file, F_GETFL) & O_ACCMODE) == O_RDONLY;
      known = known && offset >= 0 && count_ < kMostFiles &&
              (read_only || file <= STDERR_FILENO);
      if (known) files_[count_++] = {file, offset};
    }
    closedir(folder);
    return known;
  }

  void PutBack() const {
    for (int i = 0; i < count_; ++i) {
      lseek(files_[i].descriptor, files_[i].offset, SEEK_SET);
    }
  }

 private:
  static constexpr int kMostFiles = 64;
  struct OpenFile {
    int descriptor;
    off_t offset;
  };
  OpenFile files_[kMostFiles];
  int count_ = 0;
};

// A child would have neither this process's other threads nor its children.
bool IsAlone() {
  struct stat threads;  // a folder of them, with two links more
  siginfo_t child;
  return stat("/proc/self/task", &threads) == 0 && threads.st_nlink == 3 &&
         waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0;
}

// Runs the cases of this allocation, each in a child, for which this returns
// with `number` as the first that fails. For the parent it returns when the
// next case is of a later allocation. Tells the campaign the child, or -1 where
// there can be none, and then what became of it.
void RunCases(long number) {
  const int error = errno;
  while (number == first_failing) {
    Offsets offsets;
    const bool forks = IsAlone() && offsets.Read();
    const pid_t child = forks ? fork() : -1;
    if (child == 0) {
      // The campaign looks first which files there are.
      char go[32];
      Receive(go);
      close(campaign);
      campaign = -1;
      return;
    }
    dprintf(campaign, "%d", child);
    if (child > 0) {
      int status = 0;
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
      offsets.PutBack();
      dprintf(campaign, "%d", status);
    }
    ReceiveCase();
  }
  errno = error;
}

bool Fails() {
  if (!counting || looking) return false;
  looking = true;
  const long number = ++count;
  if (log_path[0] != '\0') NoteStack(number);
  if (campaign >= 0 && number == first_failing) RunCases(number);
  looking = false;
  if (number < first_failing || number > last_failing) return false;
  errno = ENOMEM;
  return true;
}

template <typename Function>
Function Next(const char* name) {
  // A sanitizer's library, or the system's.
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

using MainFunction = int (*)(int, char**, char**);
MainFunction program_main = nullptr;

int BeginMain(int argc, char** argv, char** environment) {
  const char* const fault = getenv("CONVLAB_FAULT");
  if (fault == nullptr) return program_main(argc, argv, environment);
  if (fault[0] == '@') {
    campaign = atoi(fault + 1);
    ReceiveCase();
  } else {
    SetCase(fault);
  }
  if (const char* const path = getenv("CONVLAB_FAULT_LOG")) {
    snprintf(log_path, sizeof(log_path), "%s", path);
  }
  unsetenv("LD_PRELOAD");
  unsetenv("CONVLAB_FAULT");
  counting = true;
  return program_main(argc, argv, environment);
}

__attribute__((destructor)) void End() {
  counting = false;
  if (log_path[0] == '\0') return;
  const int file = open(log_path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0) return;
  dprintf(file, "%ld\n", count.load());
  for (int i = 0; i < stack_count && i < kMostStacks / 2; ++i) {
    dprintf(file, "%ld\n", first_with_stack[i]);
  }
  close(file);
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int __libc_start_main(MainFunction main, int argc, char** argv,
                               void (*begin)(), void (*end)(),
                               void (*loader_end)(), void* stack_end) {
  program_main = main;
  return Next<int (*)(MainFunction, int, char**, void (*)(), void (*)(),
                      void (*)(), void*)>("__libc_start_main")(
      BeginMain, argc, argv, begin, end, loader_end, stack_end);
}

EXPORTED void* malloc(size_t size) {
  static auto* const next = Next<void* (*)(size_t)>("malloc");
  return Fails() ? nullptr : next(size);
}

EXPORTED void* calloc(size_t items, size_t size) {
  static auto* const next = Next<void* (*)(size_t, size_t)>("calloc");
  return Fails() ? nullptr : next(items, size);
}

EXPORTED void* realloc(void* old, size_t size) {
  static auto* const next = Next<void* (*)(void*, size_t)>("realloc");
  return Fails() ? nullptr : next(old, size);
}

EXPORTED void* memalign(size_t alignment, size_t size) {
  static auto* const next = Next<void* (*)(size_t, size_t)>("memalign");
  return Fails() ? nullptr : next(alignment, size);
}

EXPORTED void* aligned_alloc(size_t alignment, size_t size) {
  static auto* const next = Next<void* (*)(size_t, size_t)>("aligned_alloc");
  return Fails() ? nullptr : next(alignment, size);
}

EXPORTED int posix_memalign(void** out, size_t alignment, size_t size) {
  static auto* const next =
      Next<int (*)(void**, size_t, size_t)>("posix_memalign");
  return Fails() ? ENOMEM : next(out, alignment, size);
}

// A sanitizer asks for each thread's stack, and ends the program if the system
// has no memory to tell it.
EXPORTED int pthread_getattr_np(pthread_t thread, pthread_attr_t* attributes) {
  static auto* const next =
      Next<int (*)(pthread_t, pthread_attr_t*)>("pthread_getattr_np");
  const bool before = looking;
  looking = true;
  const int error = next(thread, attributes);
  looking = before;
  return error;
}

// The sanitizer's would not call malloc.
void* operator new(size_t size) {
  for (;;) {
    if (void* const memory = malloc(size)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
void* operator new(size_t size, std::align_val_t alignment) {
  for (;;) {
    void* const memory = memalign(static_cast<size_t>(alignment), size);
    if (memory != nullptr) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
void* operator new[](size_t size) { return operator new(size); }
void* operator new[](size_t size, std::align_val_t alignment) {
  return operator new(size, alignment);
}
