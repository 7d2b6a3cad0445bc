// Kernels for process_test.cc: which one this library is, the environment
// variable CONVLAB_TEST_BEHAVIOUR says. All but the first few misbehave.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kernels/judge/source/abi.h"

namespace {

size_t InputElements(const ConvlabCall& c) {
  return size_t{1} * c.batch * c.channels * c.height * c.width;
}
size_t OutputElements(const ConvlabCall& c) {
  return size_t{1} * c.batch * c.filters * (c.height - c.kernel_size + 1) *
         (c.width - c.kernel_size + 1);
}
float* Mutable(const float* data) { return const_cast<float*>(data); }

void Convolve(const ConvlabCall& c, float* y) {
  const int rows = (c.height - c.kernel_size) / c.stride + 1;
  const int columns = (c.width - c.kernel_size) / c.stride + 1;
  for (int b = 0; b < c.batch; ++b) {
    for (int m = 0; m < c.filters; ++m) {
      for (int h = 0; h < rows; ++h) {
        for (int w = 0; w < columns; ++w) {
          float sum = 0;
          for (int ch = 0; ch < c.channels; ++ch) {
            for (int p = 0; p < c.kernel_size; ++p) {
              for (int q = 0; q < c.kernel_size; ++q) {
                sum += c.host_x[((b * c.channels + ch) * c.height +
                                 h * c.stride + p) *
                                    c.width +
                                w * c.stride + q] *
                       c.host_k[((m * c.channels + ch) * c.kernel_size + p) *
                                    c.kernel_size +
                                q];
              }
            }
          }
          y[((b * c.filters + m) * rows + h) * columns + w] = sum;
        }
      }
    }
  }
}

void Right(ConvlabCall* call) { Convolve(*call, call->host_y); }

void Sleep(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// Recursion that the compiler cannot turn into a loop.
volatile int sink = 0;
int Overflow(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  return depth == sink ? 0 : Overflow(depth + 1) + frame[0];
}

void Crash() {
  static int* volatile nowhere = nullptr;
  *nowhere = 1;
}

void WriteToAllDescriptors() {
  const std::string rubbish(3000, 'x');
  for (int file = 0; file < 256; ++file) {
    if (write(file, rubbish.data(), rubbish.size()) < 0) continue;
  }
}

// A reply of the right size, such as the process would send.
void ForgeReply() {
  const std::vector<char> forged(1 << 16);
  for (int size = 8; size < 1024; size += 8) {
    send(3, forged.data(), size, 0);
  }
}

// A child process, by every way that there is.
void ForkBySystemCall() { syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

// What a helper thread still does when op has returned.
void Later(ConvlabCall* call) {
  const ConvlabCall copy = *call;
  std::thread([copy] {
    Sleep(100);
    Convolve(copy, copy.host_y);
  }).detach();
}

void LeaveRunning(ConvlabCall* call) {
  std::thread([] {
    for (;;) sink = sink + 1;
  }).detach();
  Right(call);
}

void ManyThreads(ConvlabCall*) {
  for (;;) {
    try {
      std::thread([] { Sleep(100000); }).detach();
    } catch (const std::exception&) {
      Sleep(10);
    }
  }
}

// A gibibyte at a time, so that the limit of time is not what it meets first.
void UseMemory(ConvlabCall*) {
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < 100; ++i) {
    blocks.emplace_back(new char[size_t{1} << 30]);
    std::memset(blocks.back().get(), 1, size_t{1} << 30);
  }
}

// The same by memory that no limit of private memory counts.
void UseSharedMemory(ConvlabCall*) {
  constexpr size_t kBytes = size_t{100} << 30;
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  std::memset(memory, 1, kBytes);
}

// Prints whether the judge's memory can be reached. The test has put its
// process into the environment.
void LookAtJudge(ConvlabCall* call) {
  const char* const judge = std::getenv("CONVLAB_TEST_JUDGE");
  if (judge == nullptr) std::abort();
  for (const char* file : {"/mem", "/maps", "/environ"}) {
    const std::string path = std::string("/proc/") + judge + file;
    if (open(path.c_str(), O_RDONLY) >= 0) std::printf("opened %s\n", file);
  }
  Right(call);
}

void WriteToProgram(ConvlabCall* call) {
  const char* const self = "/proc/self/exe";
  char path[4096] = {};
  if (readlink(self, path, sizeof(path) - 1) > 0) {
    if (open(self, O_WRONLY) >= 0) std::printf("opened the program\n");
    if (truncate(path, 0) == 0) std::printf("truncated the program\n");
  }
  Right(call);
}

// A new file in the folder that the test has put into the environment, and one
// that is there.
void WriteFiles(ConvlabCall* call) {
  const std::string folder = std::getenv("CONVLAB_TEST_FOLDER");
  const std::string old_file = folder + "/old";
  if (open((folder + "/new").c_str(), O_WRONLY | O_CREAT, 0600) >= 0) {
    std::printf("made a file\n");
  }
  if (open(old_file.c_str(), O_WRONLY) >= 0) std::printf("opened a file\n");
  if (truncate(old_file.c_str(), 0) == 0) std::printf("truncated a file\n");
  if (unlink(old_file.c_str()) == 0) std::printf("removed a file\n");
  Right(call);
}

// Prints the variables that a kernel must not see.
void LookAtEnvironment(ConvlabCall* call) {
  if (std::getenv("CONVLAB_SEAL_KEY") != nullptr) std::printf("has the key\n");
  Right(call);
}

// The file of the tensors is sealed: the judge can always read it.
void ShrinkFiles(ConvlabCall* call) {
  Right(call);
  for (int file = 3; file < 64; ++file) {
    if (ftruncate(file, 0) == 0) std::printf("shrank %d\n", file);
  }
}

const std::map<std::string, void (*)(ConvlabCall*)>& Behaviours() {
  static const std::map<std::string, void (*)(ConvlabCall*)> behaviours = {
      {"right", Right},
      {"adds",  // to what the output held before
       [](ConvlabCall* c) {
         std::vector<float> y(OutputElements(*c));
         Convolve(*c, y.data());
         for (size_t i = 0; i < y.size(); ++i) c->host_y[i] += y[i];
       }},
      {"only first",  // of the calls in this process
       [](ConvlabCall* c) {
         static int calls = 0;
         if (calls++ == 0) Right(c);
       }},
      {"sleeps", [](ConvlabCall* c) { Sleep(20), Right(c); }},
      {"leaves a thread", LeaveRunning},
      {"later", Later},
      {"leaks",
       [](ConvlabCall* c) {
         static std::vector<std::unique_ptr<char[]>> blocks;
         constexpr size_t kBytes = size_t{16} << 20;
         blocks.emplace_back(new char[kBytes]);
         std::memset(blocks.back().get(), 1, kBytes);
         Right(c);
       }},
      {"nothing", [](ConvlabCall*) {}},
      {"prints",
       [](ConvlabCall* c) {
         Right(c);
         std::printf("Correctness: 1.0\n");
         std::cerr << "Op Time: 0.000001" << std::endl;
       }},
      {"prints much",
       [](ConvlabCall* c) {
         for (int i = 0; i < 100000; ++i) std::printf("line %d\n", i);
         Right(c);
       }},
      {"segv", [](ConvlabCall*) { Crash(); }},
      {"fpe", [](ConvlabCall* c) { sink = 5 / (c->stride - 1); }},
      {"abort", [](ConvlabCall*) { std::abort(); }},
      {"overflow", [](ConvlabCall*) { sink = Overflow(1); }},
      {"trap", [](ConvlabCall*) { __builtin_trap(); }},
      {"thread segv",
       [](ConvlabCall*) { std::thread([] { Crash(); }).join(); }},
      {"segv ignored",
       [](ConvlabCall*) {
         std::signal(SIGSEGV, SIG_IGN);
         Crash();
       }},
      {"kill self", [](ConvlabCall*) { kill(getpid(), SIGKILL); }},
      {"exit 0", [](ConvlabCall*) { std::exit(0); }},
      {"exit 1 printing",
       [](ConvlabCall*) {
         std::printf("last words");
         std::exit(1);
       }},
      {"_exit", [](ConvlabCall*) { _exit(0); }},
      {"throws",
       [](ConvlabCall*) { throw std::runtime_error("no such\nkernel"); }},
      {"thread throws",
       [](ConvlabCall*) {
         std::thread([] { throw std::runtime_error("in a thread"); }).join();
       }},
      {"endless",
       [](ConvlabCall*) {
         for (;;) sink = sink + 1;
       }},
      {"stops itself", [](ConvlabCall*) { kill(getpid(), SIGSTOP); }},
      {"fork", [](ConvlabCall*) { sink = fork(); }},
      {"clone", [](ConvlabCall*) { ForkBySystemCall(); }},
      {"system", [](ConvlabCall*) { sink = std::system("true"); }},
      {"popen", [](ConvlabCall*) { sink = popen("true", "r") == nullptr; }},
      {"exec",
       [](ConvlabCall*) {
         execl("/bin/sh", "sh", "-c", "echo Correctness: 1.0", nullptr);
       }},
      {"socket", [](ConvlabCall*) { sink = socket(AF_INET, SOCK_STREAM, 0); }},
      {"kill parent", [](ConvlabCall*) { kill(getppid(), SIGKILL); }},
      {"kill group", [](ConvlabCall*) { kill(0, SIGKILL); }},
      {"kill all", [](ConvlabCall*) { kill(-1, SIGKILL); }},
      {"ptrace", [](ConvlabCall*) { ptrace(PTRACE_ATTACH, getppid(), 0, 0); }},
      {"read other",
       [](ConvlabCall*) {
         char byte;
         iovec here = {&byte, 1};
         iovec there = {&byte, 1};
         process_vm_readv(getppid(), &here, 1, &there, 1, 0);
       }},
      {"catches refusals",
       [](ConvlabCall* c) {
         std::signal(SIGSYS, SIG_IGN);
         sink = fork();
         Right(c);
       }},
      {"many threads", ManyThreads},
      {"memory", UseMemory},
      {"shared memory", UseSharedMemory},
      {"writes files", WriteFiles},
      {"looks for the key", LookAtEnvironment},
      {"look at judge", LookAtJudge},
      {"write to program", WriteToProgram},
      {"shrink files", ShrinkFiles},
      {"close all",
       [](ConvlabCall*) {
         for (int file = 0; file < 1024; ++file) close(file);
         Sleep(100000);
       }},
      {"close all and return",
       [](ConvlabCall* c) {
         for (int file = 0; file < 1024; ++file) close(file);
         Right(c);
       }},
      {"write to all",
       [](ConvlabCall* c) { WriteToAllDescriptors(), Right(c); }},
      {"forge", [](ConvlabCall* c) { ForgeReply(), Right(c); }},
      {"write behind y",
       [](ConvlabCall* c) { Right(c), c->host_y[OutputElements(*c)] = 1; }},
      {"write far behind y",
       [](ConvlabCall* c) { c->host_y[OutputElements(*c) + 5000] = 1; }},
      {"write before y", [](ConvlabCall* c) { Right(c), c->host_y[-1] = 1; }},
      {"read far behind x",
       [](ConvlabCall* c) {
         sink = static_cast<int>(c->host_x[InputElements(*c) + 25000]);
       }},
      {"write x", [](ConvlabCall* c) { Right(c), Mutable(c->host_x)[7] = 0; }},
      // Two changes of sign, which a weak checksum would not see.
      {"write k",
       [](ConvlabCall* c) {
         Right(c);
         for (int i : {1, 5}) Mutable(c->host_k)[i] = -c->host_k[i];
       }},
  };
  return behaviours;
}

std::string Behaviour() {
  const char* const name = std::getenv("CONVLAB_TEST_BEHAVIOUR");
  return name == nullptr ? "right" : name;
}

// Runs while the library is loaded.
__attribute__((constructor)) void Construct() {
  const std::string name = Behaviour();
  if (name == "constructor sleeps") Sleep(100000);
  if (name == "constructor exits") std::exit(0);
  if (name == "constructor forks") sink = fork();
}

}  // namespace

extern "C" const ConvlabKernel* convlab_kernel() {
  static ConvlabKernel kernel = {};
  const std::string name = Behaviour();
  kernel.abi = name == "other abi" ? 99 : CONVLAB_KERNEL_ABI;
  kernel.name = "a library of our own";
  kernel.zeroed_output = name == "adds";
  const auto found = Behaviours().find(name);
  kernel.op = found == Behaviours().end() ? Right : found->second;
  return &kernel;
}
