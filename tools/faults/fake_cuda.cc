// A CUDA runtime for machines without a GPU, which fails where it is told to.
// Linked into a program, it takes the place of the real one. Its device is the
// host: memory is the host's, copies are copies, kernels do nothing, so that
// results are wrong and all calls that lead to them are right. Which calls fail
// says the environment (refused_calls.h); if all that follow do, they fail as
// after a kernel that reads where it must not.
//
// What the program did not release is told on standard error, and what it
// released twice or never had ends it by a signal.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "tools/faults/refused_calls.h"

namespace {

struct State {
  RefusedCalls refused;
  std::mutex mutex;
  cudaError_t last_error = cudaSuccess;
  // What is in use, with its kind's name.
  std::map<const void*, const char*> objects;
  bool capturing = false;
};

void Report();

State& TheState() {
  static State* const state = [] {
    auto* const made = new State;
    std::atexit(Report);
    return made;
  }();
  return *state;
}

void Report() {
  State& state = TheState();
  std::map<std::string_view, int> kinds;
  for (const auto& [object, kind] : state.objects) ++kinds[kind];
  for (const auto& [kind, count] : kinds) {
    std::fprintf(stderr, "fake_cuda: %d of %s are not released\n", count,
                 kind.data());
  }
  state.refused.WriteLog();
}

// Counts a call that may fail. Its place in the code is where it returns to.
cudaError_t Call(const void* place, cudaError_t error) {
  State& state = TheState();
  if (!state.refused.Next(reinterpret_cast<uintptr_t>(place))) {
    return cudaSuccess;
  }
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.last_error = state.refused.sticks() ? cudaErrorIllegalAddress : error;
  return state.last_error;
}

void Add(const void* object, const char* kind) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.objects[object] = kind;
}

void Remove(const void* object, const char* kind) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  const auto found = state.objects.find(object);
  if (found == state.objects.end() || std::strcmp(found->second, kind) != 0) {
    std::fprintf(stderr, "fake_cuda: %p is none of %s\n", object, kind);
    std::abort();
  }
  state.objects.erase(found);
}

constexpr char kMemory[] = "device memory", kPinned[] = "pinned memory",
               kStream[] = "streams", kEvent[] = "events", kGraph[] = "graphs",
               kGraphExec[] = "executable graphs";

// New memory, or a new handle, which is memory too.
void New(void** out, size_t bytes, const char* kind) {
  *out = std::calloc(1, bytes == 0 ? 1 : bytes);
  Add(*out, kind);
}

void Delete(void* object, const char* kind) {
  if (object == nullptr && (kind == kMemory || kind == kPinned)) return;
  Remove(object, kind);
  std::free(object);
}

// As an H200 answers.
int Attribute(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      return 9;
    case cudaDevAttrMultiProcessorCount:
      return 132;
    case cudaDevAttrClockRate:
      return 1980000;
    case cudaDevAttrMemoryClockRate:
      return 3201000;
    case cudaDevAttrGlobalMemoryBusWidth:
      return 6016;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return 232448;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return 233472;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2048;
    default:
      return 0;
  }
}

thread_local struct {
  dim3 grid, block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
} configuration;

}  // namespace

// Begins a function of the runtime that may fail with `error`.
#define CALL_OR_FAIL(error)                                                   \
  if (const cudaError_t refused = Call(                                       \
          __builtin_extract_return_addr(__builtin_return_address(0)), error); \
      refused != cudaSuccess) {                                               \
    return refused;                                                           \
  }

// A function that has nothing to do on the host.
#define NOTHING_OR_FAIL(name, error, ...) \
  cudaError_t name(__VA_ARGS__) {         \
    CALL_OR_FAIL(error)                   \
    return cudaSuccess;                   \
  }

// Functions that make and remove memory or a handle, which is `made`.
#define MAKES(name, kind, bytes, ...)                 \
  cudaError_t name(__VA_ARGS__) {                     \
    CALL_OR_FAIL(cudaErrorMemoryAllocation)           \
    New(reinterpret_cast<void**>(made), bytes, kind); \
    return cudaSuccess;                               \
  }
#define REMOVES(name, kind, Handle)      \
  cudaError_t name(Handle object) {      \
    Delete(object, kind);                \
    CALL_OR_FAIL(cudaErrorLaunchFailure) \
    return cudaSuccess;                  \
  }

extern "C" {

// Devices.

cudaError_t cudaGetDeviceCount(int* count) {
  CALL_OR_FAIL(cudaErrorInsufficientDriver)
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  CALL_OR_FAIL(cudaErrorInitializationError)
  *device = 0;
  return cudaSuccess;
}
NOTHING_OR_FAIL(cudaSetDevice, cudaErrorDevicesUnavailable, int)
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  CALL_OR_FAIL(cudaErrorInitializationError)
  *properties = {};
  std::strcpy(properties->name, "host (fake_cuda)");
  properties->major = 9;
  properties->multiProcessorCount = 132;
  properties->totalGlobalMem = size_t{8} << 30;
  properties->l2CacheSize = 50 << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  CALL_OR_FAIL(cudaErrorInitializationError)
  *value = Attribute(attribute);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  CALL_OR_FAIL(cudaErrorInitializationError)
  *value = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int) {
  CALL_OR_FAIL(cudaErrorInitializationError)
  std::snprintf(text, size, "0000:00:00.0");
  return cudaSuccess;
}
#define VERSION_OR_FAIL(name)                  \
  cudaError_t name(int* version) {             \
    CALL_OR_FAIL(cudaErrorInitializationError) \
    *version = CUDART_VERSION;                 \
    return cudaSuccess;                        \
  }
VERSION_OR_FAIL(cudaDriverGetVersion)
VERSION_OR_FAIL(cudaRuntimeGetVersion)
NOTHING_OR_FAIL(cudaDeviceSynchronize, cudaErrorLaunchFailure, void)
NOTHING_OR_FAIL(cudaDeviceSetLimit, cudaErrorUnsupportedLimit, cudaLimit,
                size_t)
NOTHING_OR_FAIL(cudaCtxResetPersistingL2Cache, cudaErrorNotSupported, void)
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  CALL_OR_FAIL(cudaErrorInitializationError)
  *free_bytes = size_t{4} << 30;
  *total_bytes = size_t{8} << 30;
  return cudaSuccess;
}
NOTHING_OR_FAIL(cudaProfilerStart, cudaErrorNotSupported, void)
NOTHING_OR_FAIL(cudaProfilerStop, cudaErrorNotSupported, void)
cudaError_t cudaGetLastError() {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  const cudaError_t error = state.last_error;
  state.last_error = cudaSuccess;
  return error;
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    default:
      return "an error of fake_cuda";
  }
}

// Memory.

MAKES(cudaMalloc, kMemory, bytes, void** made, size_t bytes)
REMOVES(cudaFree, kMemory, void*)
MAKES(cudaMallocHost, kPinned, bytes, void** made, size_t bytes)
REMOVES(cudaFreeHost, kPinned, void*)
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes,
                       cudaMemcpyKind) {
  CALL_OR_FAIL(cudaErrorLaunchFailure)
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                            cudaMemcpyKind, cudaStream_t) {
  CALL_OR_FAIL(cudaErrorLaunchFailure)
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
NOTHING_OR_FAIL(cudaMemcpyToSymbolAsync, cudaErrorInvalidSymbol, const void*,
                const void*, size_t, size_t, cudaMemcpyKind, cudaStream_t)
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  CALL_OR_FAIL(cudaErrorLaunchFailure)
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes,
                            cudaStream_t) {
  CALL_OR_FAIL(cudaErrorLaunchFailure)
  std::memset(memory, value, bytes);
  return cudaSuccess;
}

// Streams, events, graphs.

MAKES(cudaStreamCreate, kStream, 1, cudaStream_t* made)
MAKES(cudaStreamCreateWithFlags, kStream, 1, cudaStream_t* made, unsigned)
REMOVES(cudaStreamDestroy, kStream, cudaStream_t)
NOTHING_OR_FAIL(cudaStreamSynchronize, cudaErrorLaunchFailure, cudaStream_t)
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  CALL_OR_FAIL(cudaErrorInvalidResourceHandle)
  *id = reinterpret_cast<uintptr_t>(stream);
  return cudaSuccess;
}
NOTHING_OR_FAIL(cudaStreamWaitEvent, cudaErrorLaunchFailure, cudaStream_t,
                cudaEvent_t, unsigned)
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  CALL_OR_FAIL(cudaErrorStreamCaptureUnsupported)
  TheState().capturing = true;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  const bool began = std::exchange(TheState().capturing, false);
  CALL_OR_FAIL(cudaErrorStreamCaptureInvalidated)
  if (!began) std::abort();  // the caller had no capture to end
  New(reinterpret_cast<void**>(graph), 1, kGraph);
  return cudaSuccess;
}
MAKES(cudaGraphInstantiateWithFlags, kGraphExec, 1, cudaGraphExec_t* made,
      cudaGraph_t, unsigned long long)
NOTHING_OR_FAIL(cudaGraphLaunch, cudaErrorLaunchFailure, cudaGraphExec_t,
                cudaStream_t)
REMOVES(cudaGraphDestroy, kGraph, cudaGraph_t)
REMOVES(cudaGraphExecDestroy, kGraphExec, cudaGraphExec_t)
MAKES(cudaEventCreate, kEvent, 1, cudaEvent_t* made)
MAKES(cudaEventCreateWithFlags, kEvent, 1, cudaEvent_t* made, unsigned)
REMOVES(cudaEventDestroy, kEvent, cudaEvent_t)
NOTHING_OR_FAIL(cudaEventRecord, cudaErrorLaunchFailure, cudaEvent_t,
                cudaStream_t)
NOTHING_OR_FAIL(cudaEventSynchronize, cudaErrorLaunchFailure, cudaEvent_t)
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  CALL_OR_FAIL(cudaErrorLaunchFailure)
  *ms = 1;
  return cudaSuccess;
}

// Kernels.

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  CALL_OR_FAIL(cudaErrorInvalidDeviceFunction)
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 64;
  attributes->sharedSizeBytes = 64;
  attributes->ptxVersion = attributes->binaryVersion = 90;
  return cudaSuccess;
}
NOTHING_OR_FAIL(cudaFuncSetAttribute, cudaErrorInvalidDeviceFunction,
                const void*, cudaFuncAttribute, int)
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          const void*, int,
                                                          size_t) {
  CALL_OR_FAIL(cudaErrorInvalidDeviceFunction)
  *blocks = 2;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                   const void*,
                                                                   int, size_t,
                                                                   unsigned) {
  CALL_OR_FAIL(cudaErrorInvalidDeviceFunction)
  *blocks = 2;
  return cudaSuccess;
}
NOTHING_OR_FAIL(cudaLaunchKernel, cudaErrorLaunchOutOfResources, const void*,
                dim3, dim3, void**, size_t, cudaStream_t)
NOTHING_OR_FAIL(cudaLaunchKernelExC, cudaErrorLaunchOutOfResources,
                const cudaLaunchConfig_t*, const void*, void**)

// What nvcc's code calls before main and for <<<>>>.

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int,
                       int) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int,
                            uint3*, uint3*, dim3*, dim3*, int*) {}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     CUstream_st* stream) {
  configuration = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared,
                                       void* stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}
#if CUDART_VERSION >= 13000
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
NOTHING_OR_FAIL(__cudaLaunchKernel, cudaErrorLaunchOutOfResources, cudaKernel_t,
                dim3, dim3, void**, size_t, cudaStream_t)
#endif

}  // extern "C"
