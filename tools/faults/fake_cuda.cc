// A CUDA runtime for machines without a GPU, which fails where it is told to.
// Linked into a program, it takes the place of the real one. Its device is the
// host: memory is the host's, copies are copies, kernels do nothing, so that
// results are wrong and all calls that lead to them are right.
//
//   CONVLAB_FAULT=7       the seventh call fails
//   CONVLAB_FAULT=7+      and all that follow, as after a kernel that
//                              reads where it must not
//   CONVLAB_FAULT_LOG=FILE  gets, when the program ends, the number of
//     calls, and the numbers of the first calls from each place in the code
//   CONVLAB_FAKE_GPUS=2   there are two devices
//
// What the program did not release is told on standard error, and what it
// released twice or never had ends it by a signal.
#include "tools/faults/fake_cuda.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace {

struct Object {
  const char* kind;
  int device;
  size_t bytes;
};

struct State {
  std::mutex mutex;
  int devices = 1;
  long first_failing = 0, last_failing = 0;
  long count = 0, launches = 0;
  const char* log = nullptr;
  std::set<const void*> places;
  std::vector<long> first_calls;
  cudaError_t last_error = cudaSuccess;
  std::map<const void*, Object> objects;  // that are in use
  bool capturing = false;
  const void* captured = nullptr;  // the stream
  unsigned long long context = 1;
};

thread_local int current_device = 0;

void Report();

State& TheState() {
  static State* const state = [] {
    auto* const made = new State;
    made->log = std::getenv("CONVLAB_FAULT_LOG");
    if (const char* const devices = std::getenv("CONVLAB_FAKE_GPUS")) {
      made->devices = std::atoi(devices);
    }
    if (const char* const fault = std::getenv("CONVLAB_FAULT")) {
      char* end = nullptr;
      made->first_failing = std::strtol(fault, &end, 10);
      made->last_failing = *end == '+' ? LONG_MAX : made->first_failing;
    }
    std::atexit(Report);
    return made;
  }();
  return *state;
}

void Report() {
  State& state = TheState();
  std::map<std::string_view, int> kinds;
  for (const auto& entry : state.objects) ++kinds[entry.second.kind];
  for (const auto& [kind, count] : kinds) {
    std::fprintf(stderr, "fake_cuda: %d of %s are not released\n", count,
                 kind.data());
  }
  if (state.log == nullptr) return;
  std::ofstream file(state.log);
  file << state.count << "\n";
  for (const long call : state.first_calls) file << call << "\n";
}

// Counts a call that may fail. Its place in the code is where it returns to.
cudaError_t Call(const void* place, cudaError_t error) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  ++state.count;
  if (state.places.insert(place).second) {
    state.first_calls.push_back(state.count);
  }
  if (state.count < state.first_failing || state.count > state.last_failing) {
    return cudaSuccess;
  }
  const bool sticks = state.last_failing > state.first_failing;
  state.last_error = sticks ? cudaErrorIllegalAddress : error;
  return state.last_error;
}

void Add(const void* object, size_t bytes, const char* kind) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.objects[object] = {kind, current_device, bytes};
}

// The object in which the address lies; of no kind if there is none.
Object Find(const void* address) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  const auto next = state.objects.upper_bound(address);
  if (next == state.objects.begin()) return {nullptr, 0, 0};
  const auto& [begin, object] = *std::prev(next);
  const bool inside = static_cast<const char*>(address) <
                      static_cast<const char*>(begin) + object.bytes;
  return inside ? object : Object{nullptr, 0, 0};
}

cudaError_t Launched() {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  ++state.launches;
  return cudaSuccess;
}

void Remove(const void* object, const char* kind) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  const auto found = state.objects.find(object);
  if (found == state.objects.end() ||
      std::strcmp(found->second.kind, kind) != 0) {
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
  const size_t room = (std::max<size_t>(bytes, 1) + 255) / 256 * 256;
  *out = std::aligned_alloc(256, room);
  std::memset(*out, 0, room);
  Add(*out, bytes, kind);
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

#define LAUNCHES(name, ...)                     \
  cudaError_t name(__VA_ARGS__) {               \
    CALL_OR_FAIL(cudaErrorLaunchOutOfResources) \
    return Launched();                          \
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

namespace convlab {

long FakeCudaCalls() { return TheState().count; }
long FakeCudaLaunches() { return TheState().launches; }

}  // namespace convlab

extern "C" {

// Devices.

cudaError_t cudaGetDeviceCount(int* count) {
  CALL_OR_FAIL(cudaErrorInsufficientDriver)
  *count = TheState().devices;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  CALL_OR_FAIL(cudaErrorInitializationError)
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  CALL_OR_FAIL(cudaErrorDevicesUnavailable)
  current_device = device;
  return cudaSuccess;
}
// Only for programs that hold nothing of the device.
cudaError_t cudaDeviceReset() {
  CALL_OR_FAIL(cudaErrorInitializationError)
  ++TheState().context;
  return cudaSuccess;
}
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
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                     const void* memory) {
  CALL_OR_FAIL(cudaErrorInvalidValue)
  const Object object = Find(memory);
  *attributes = {};
  attributes->type = object.kind == kMemory   ? cudaMemoryTypeDevice
                     : object.kind == kPinned ? cudaMemoryTypeHost
                                              : cudaMemoryTypeUnregistered;
  attributes->device = object.device;
  return cudaSuccess;
}
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
#if CUDART_VERSION >= 12080
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  CALL_OR_FAIL(cudaErrorInvalidResourceHandle)
  *device = Find(stream).device;
  return cudaSuccess;
}
#endif
cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  cudaStreamCaptureStatus* status) {
  CALL_OR_FAIL(cudaErrorInvalidResourceHandle)
  *status = TheState().capturing && TheState().captured == stream
                ? cudaStreamCaptureStatusActive
                : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  CALL_OR_FAIL(cudaErrorStreamCaptureUnsupported)
  TheState().capturing = true;
  TheState().captured = stream;
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
LAUNCHES(cudaLaunchKernel, const void*, dim3, dim3, void**, size_t,
         cudaStream_t)
LAUNCHES(cudaLaunchKernelExC, const cudaLaunchConfig_t*, const void*, void**)

// Of the driver.

static int ContextId(void*, unsigned long long* id) {
  *id = TheState().context;
  return 0;
}
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(
    const char* name, void** function, unsigned, unsigned long long,
    cudaDriverEntryPointQueryResult* result) {
  CALL_OR_FAIL(cudaErrorInitializationError)
  const bool known = std::strcmp(name, "cuCtxGetId") == 0;
  *function = known ? reinterpret_cast<void*>(ContextId) : nullptr;
  *result =
      known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
#endif

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
LAUNCHES(__cudaLaunchKernel, cudaKernel_t, dim3, dim3, void**, size_t,
         cudaStream_t)
#endif

}  // extern "C"
