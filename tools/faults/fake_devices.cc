#include "tools/faults/fake_devices.h"

#include <cxxabi.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/faults/refused_calls.h"

namespace convlab::fake {
namespace {

struct Object {
  const char* kind;
  int device;
  size_t bytes;
};

struct Kernel {
  const char* mangled;
  std::string name;                 // empty: not looked at yet
  std::vector<bool> pointers = {};  // of each parameter, whether it is one
};

struct State {
  std::mutex mutex;
  int devices = 1;
  RefusedCalls refused;
  long launches = 0;
  std::atomic<long> allocations{0};
  unsigned long long context = 1;
  std::map<const char*, Object> objects;
  std::set<cudaStream_t> capturing;
  std::map<const void*, Kernel> kernels;
};

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

void Report();

State& TheState() {
  static State* const state = [] {
    auto* const made = new State;
    if (const char* const devices = std::getenv("CONVLAB_FAKE_GPUS")) {
      made->devices = std::atoi(devices);
    }
    std::atexit(Report);
    return made;
  }();
  return *state;
}

void Report() {
  State& state = TheState();
  std::map<std::string_view, int> kinds;
  for (const auto& [at, object] : state.objects) ++kinds[object.kind];
  for (const auto& [kind, count] : kinds) {
    std::fprintf(stderr, "fake_cuda: %d of %s are not released\n", count,
                 kind.data());
  }
  state.refused.WriteLog();
}

[[noreturn]] void End(const std::string& what) {
  std::fprintf(stderr, "fake_cuda: %s\n", what.c_str());
  std::abort();
}

std::string Text(const void* pointer) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", pointer);
  return text;
}

void Insert(const void* at, const char* kind, int device, size_t bytes) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.objects[static_cast<const char*>(at)] = {kind, device, bytes};
}

// The object in which the pointer lies, or null. With the mutex locked.
const Object* Find(const State& state, const void* pointer) {
  const char* const at = static_cast<const char*>(pointer);
  auto found = state.objects.upper_bound(at);
  if (found == state.objects.begin()) return nullptr;
  --found;
  return at < found->first + found->second.bytes ? &found->second : nullptr;
}

void CheckDevice(const std::string& call, const Object& object) {
  if (object.device == current_device) return;
  End(call + ": " + object.kind + " of GPU " + std::to_string(object.device) +
      ", and GPU " + std::to_string(current_device) + " is current");
}

// "f(A*, B<C, D>)" has a pointer and something else.
void Describe(Kernel& kernel) {
  int failed = 0;
  char* const text =
      abi::__cxa_demangle(kernel.mangled, nullptr, nullptr, &failed);
  kernel.name = failed == 0 ? text : kernel.mangled;
  std::free(text);
  const std::string& name = kernel.name;
  size_t end = name.rfind(')');
  if (failed != 0 || end == std::string::npos) return;
  // Backwards from the end of the parameters to their beginning.
  int depth = 0;
  std::vector<bool> backwards;
  for (size_t at = end; at-- > 0;) {
    const char c = name[at];
    if (c == ')' || c == '>') ++depth;
    const bool begins = c == '(' && depth == 0;
    if (c == '(' || c == '<') --depth;
    if (!begins && (c != ',' || depth != 0)) continue;
    backwards.push_back(name[end - 1] == '*');
    end = at;
    if (begins) break;
  }
  kernel.pointers.assign(backwards.rbegin(), backwards.rend());
}

}  // namespace

cudaError_t Call(const void* place, cudaError_t error, int device) {
  RefusedCalls& refused = TheState().refused;
  if (!refused.Next(reinterpret_cast<uintptr_t>(place), device)) {
    return cudaSuccess;
  }
  last_error = refused.sticks() ? cudaErrorIllegalAddress : error;
  return last_error;
}

cudaError_t TakeLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

void RefuseCall(long n) { TheState().refused.Refuse(n); }

long CallCount() { return TheState().refused.count(); }
long LaunchCount() { return TheState().launches; }
long AllocationCount() { return TheState().allocations; }

int DeviceCount() { return TheState().devices; }
int CurrentDevice() { return current_device; }
void SetCurrentDevice(int device) { current_device = device; }
unsigned long long ContextNumber() { return TheState().context; }
void Reset() { ++TheState().context; }

void New(void** out, size_t bytes, const char* kind) {
  if (kind == kMemory || kind == kPinned) ++TheState().allocations;
  constexpr size_t kAlignment = 256;
  bytes = bytes == 0 ? 1 : bytes;
  const size_t room = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  *out = std::aligned_alloc(kAlignment, room);
  std::memset(*out, 0, room);
  Insert(*out, kind, current_device, bytes);
}

void NewBeside(const void* other, void** out, const char* kind) {
  State& state = TheState();
  int device = current_device;
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (const Object* const found = Find(state, other)) device = found->device;
  }
  *out = std::calloc(1, 1);
  Insert(*out, kind, device, 1);
}

void Delete(void* object, const char* kind) {
  if (object == nullptr && (kind == kMemory || kind == kPinned)) return;
  Remove(object, kind);
  std::free(object);
}

void Add(void* object, size_t bytes, const char* kind) {
  Insert(object, kind, current_device, bytes);
}

void Remove(void* object, const char* kind) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  const auto found = state.objects.find(static_cast<const char*>(object));
  if (found == state.objects.end() || found->second.kind != kind) {
    End(Text(object) + " is not " + kind);
  }
  state.objects.erase(found);
}

const char* KindOf(const void* pointer, int* device) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  const Object* const found = Find(state, pointer);
  *device = found == nullptr ? current_device : found->device;
  return found == nullptr ? nullptr : found->kind;
}

void Use(const char* call, const void* object, const char* kind) {
  if (object == nullptr && kind == kStream) return;
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  const Object* const found = Find(state, object);
  if (found == nullptr || found->kind != kind) {
    End(std::string(call) + ": " + Text(object) + " is not " + kind);
  }
  CheckDevice(call, *found);
}

void UseMemory(const char* call, const void* pointer) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  const Object* const found = Find(state, pointer);
  if (found != nullptr && found->kind == kMemory) CheckDevice(call, *found);
}

void BeginCapture(cudaStream_t stream) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.capturing.insert(stream);
}

bool IsCaptured(cudaStream_t stream) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  return state.capturing.count(stream) > 0;
}

bool EndCapture(cudaStream_t stream) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  return state.capturing.erase(stream) > 0;
}

void AddKernel(const void* function, const char* name) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.kernels[function] = {name, ""};
}

void UseArguments(const void* function, void** arguments) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  ++state.launches;
  const auto kernel = state.kernels.find(function);
  if (kernel == state.kernels.end()) return;
  if (kernel->second.name.empty()) Describe(kernel->second);
  const std::vector<bool>& pointers = kernel->second.pointers;
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (!pointers[i]) continue;
    const void* pointer = nullptr;
    std::memcpy(&pointer, arguments[i], sizeof(pointer));
    if (pointer == nullptr) continue;
    // Only then, so that tests can count what a launch allocates.
    const auto what = [&] {
      return kernel->second.name + ", argument " + std::to_string(i + 1);
    };
    const Object* const found = Find(state, pointer);
    if (found == nullptr ||
        (found->kind != kMemory && found->kind != kPinned)) {
      End(what() + ": " + Text(pointer) + " is no memory that a GPU reaches");
    }
    if (found->kind == kMemory && found->device != current_device) {
      CheckDevice(what(), *found);
    }
  }
}

}  // namespace convlab::fake
