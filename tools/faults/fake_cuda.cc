// A CUDA runtime for machines without a GPU, which fails where it is told to.
// Linked into a program, it takes the place of the real one. Its device is the
// host: memory is the host's, copies are copies, kernels do nothing, so that
// results are wrong and all calls that lead to them are right. Which calls fail
// says the environment (refused_calls.h); if all that follow do, they fail as
// after a kernel that reads where it must not.
//
//   CONVLAB_FAKE_GPUS=2   so many devices
//
// What the program did not release is told on standard error. What it released
// twice or never had ends it by a signal, and so does what it uses with another
// device as the current one (fake_devices.h).
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/faults/fake_devices.h"
#include "tools/faults/fake_gpus.h"

namespace {

using convlab::fake::kEvent;
using convlab::fake::kGraph;
using convlab::fake::kGraphExec;
using convlab::fake::kLocked;
using convlab::fake::kMemory;
using convlab::fake::kPinned;
using convlab::fake::kStream;
using convlab::fake::Use;
using convlab::fake::UseMemory;

cudaError_t Launch(const void* kernel, dim3 grid, dim3 block, void** arguments,
                   size_t shared, cudaStream_t stream) {
  Use("a kernel's launch", stream, kStream);
  if (!convlab::fake::TakesLaunch(kernel, grid, block, shared)) {
    return cudaErrorInvalidConfiguration;
  }
  convlab::fake::UseArguments(kernel, arguments);
  return cudaSuccess;
}

}  // namespace

// Begins a function of the runtime that may fail with `error`, on the current
// device or another one.
#define CALL_OF_OR_FAIL(device, error)                                       \
  if (const cudaError_t refused = convlab::fake::Call(                       \
          __builtin_extract_return_addr(__builtin_return_address(0)), error, \
          device);                                                           \
      refused != cudaSuccess) {                                              \
    return refused;                                                          \
  }
#define CALL_OR_FAIL(error) \
  CALL_OF_OR_FAIL(convlab::fake::CurrentDevice(), error)

// A function that has nothing to do on the host.
#define NOTHING_OR_FAIL(name, error, ...) \
  cudaError_t name(__VA_ARGS__) {         \
    CALL_OR_FAIL(error)                   \
    return cudaSuccess;                   \
  }

// Functions that make and remove memory or a handle, which is `made`.
#define MAKES(name, kind, bytes, ...)                                \
  cudaError_t name(__VA_ARGS__) {                                    \
    CALL_OR_FAIL(cudaErrorMemoryAllocation)                          \
    convlab::fake::New(reinterpret_cast<void**>(made), bytes, kind); \
    return cudaSuccess;                                              \
  }
#define REMOVES(name, kind, Handle)      \
  cudaError_t name(Handle object) {      \
    convlab::fake::Delete(object, kind); \
    CALL_OR_FAIL(cudaErrorLaunchFailure) \
    return cudaSuccess;                  \
  }

extern "C" {

// Devices.

cudaError_t cudaGetDeviceCount(int* count) {
  CALL_OF_OR_FAIL(convlab::fake::kNoDevice, cudaErrorInsufficientDriver)
  *count = convlab::fake::DeviceCount();
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  CALL_OF_OR_FAIL(convlab::fake::kNoDevice, cudaErrorInitializationError)
  *device = convlab::fake::CurrentDevice();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  CALL_OF_OR_FAIL(device, cudaErrorDevicesUnavailable)
  if (device < 0 || device >= convlab::fake::DeviceCount())
    return cudaErrorInvalidDevice;
  convlab::fake::SetCurrentDevice(device);
  return cudaSuccess;
}
cudaError_t cudaDeviceReset() {
  CALL_OR_FAIL(cudaErrorInitializationError)
  convlab::fake::Reset();
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  CALL_OR_FAIL(cudaErrorInitializationError)
  *properties = {};
  std::strcpy(properties->name, "host (fake_cuda)");
  const convlab::fake::Gpu& gpu = convlab::fake::GpuOf(device);
  properties->major = gpu.capability / 10;
  properties->minor = gpu.capability % 10;
  properties->multiProcessorCount = gpu.multiprocessors;
  properties->totalGlobalMem = size_t{8} << 30;
  properties->l2CacheSize = 4 << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute,
                                   int device) {
  CALL_OR_FAIL(cudaErrorInitializationError)
  *value = convlab::fake::Attribute(attribute, device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  CALL_OR_FAIL(cudaErrorInitializationError)
  *value = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  CALL_OR_FAIL(cudaErrorInitializationError)
  std::snprintf(text, size, "0000:%02x:00.0", device);
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
  // Of a part of it bench measures the ceilings: where that takes long, it ends
  // early, and another number of calls is made each time.
  const char* const megabytes = std::getenv("CONVLAB_FAKE_FREE_MB");
  *free_bytes = size_t(megabytes == nullptr ? 256 : std::atoi(megabytes)) << 20;
  *total_bytes = size_t{8} << 30;
  return cudaSuccess;
}
NOTHING_OR_FAIL(cudaProfilerStart, cudaErrorNotSupported, void)
NOTHING_OR_FAIL(cudaProfilerStop, cudaErrorNotSupported, void)
cudaError_t cudaGetLastError() { return convlab::fake::TakeLastError(); }
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
  *attributes = {};
  const char* const kind = convlab::fake::KindOf(memory, &attributes->device);
  attributes->type = kind == kMemory ? cudaMemoryTypeDevice
                     : kind == kPinned || kind == kLocked
                         ? cudaMemoryTypeHost
                         : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
MAKES(cudaMallocHost, kPinned, bytes, void** made, size_t bytes)
REMOVES(cudaFreeHost, kPinned, void*)
cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  CALL_OR_FAIL(cudaErrorMemoryAllocation)
  convlab::fake::Add(memory, bytes, kLocked);
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory) {
  convlab::fake::Remove(memory, kLocked);
  CALL_OR_FAIL(cudaErrorLaunchFailure)
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes,
                       cudaMemcpyKind) {
  CALL_OR_FAIL(cudaErrorLaunchFailure)
  UseMemory("cudaMemcpy", to);
  UseMemory("cudaMemcpy", from);
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                            cudaMemcpyKind, cudaStream_t stream) {
  CALL_OR_FAIL(cudaErrorLaunchFailure)
  Use("cudaMemcpyAsync", stream, kStream);
  UseMemory("cudaMemcpyAsync", to);
  UseMemory("cudaMemcpyAsync", from);
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
NOTHING_OR_FAIL(cudaMemcpyToSymbolAsync, cudaErrorInvalidSymbol, const void*,
                const void*, size_t, size_t, cudaMemcpyKind, cudaStream_t)
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  CALL_OR_FAIL(cudaErrorLaunchFailure)
  UseMemory("cudaMemset", memory);
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes,
                            cudaStream_t stream) {
  CALL_OR_FAIL(cudaErrorLaunchFailure)
  Use("cudaMemsetAsync", stream, kStream);
  UseMemory("cudaMemsetAsync", memory);
  std::memset(memory, value, bytes);
  return cudaSuccess;
}

// Streams, events, graphs.

MAKES(cudaStreamCreate, kStream, 1, cudaStream_t* made)
MAKES(cudaStreamCreateWithFlags, kStream, 1, cudaStream_t* made, unsigned)
REMOVES(cudaStreamDestroy, kStream, cudaStream_t)
NOTHING_OR_FAIL(cudaStreamQuery, cudaErrorLaunchFailure, cudaStream_t)
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
  convlab::fake::KindOf(stream, device);
  return cudaSuccess;
}
#endif
cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  cudaStreamCaptureStatus* status) {
  CALL_OR_FAIL(cudaErrorInvalidResourceHandle)
  *status = convlab::fake::IsCaptured(stream) ? cudaStreamCaptureStatusActive
                                              : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  CALL_OR_FAIL(cudaErrorStreamCaptureUnsupported)
  Use("cudaStreamBeginCapture", stream, kStream);
  convlab::fake::BeginCapture(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const bool began = convlab::fake::EndCapture(stream);
  CALL_OR_FAIL(cudaErrorStreamCaptureInvalidated)
  if (!began) std::abort();  // the caller had no capture to end
  convlab::fake::NewBeside(stream, reinterpret_cast<void**>(graph), kGraph);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec,
                                          cudaGraph_t graph,
                                          unsigned long long) {
  CALL_OR_FAIL(cudaErrorMemoryAllocation)
  convlab::fake::NewBeside(graph, reinterpret_cast<void**>(exec), kGraphExec);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  CALL_OR_FAIL(cudaErrorLaunchFailure)
  Use("cudaGraphLaunch", exec, kGraphExec);
  Use("cudaGraphLaunch", stream, kStream);
  return cudaSuccess;
}
// Graphs remember nothing, so that a recorded call has no launches.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*,
                              size_t* count) {
  CALL_OR_FAIL(cudaErrorInvalidValue)
  Use("cudaGraphGetNodes", graph, kGraph);
  *count = 0;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t, cudaGraphNodeType* type) {
  CALL_OR_FAIL(cudaErrorInvalidValue)
  *type = cudaGraphNodeTypeKernel;
  return cudaSuccess;
}
REMOVES(cudaGraphDestroy, kGraph, cudaGraph_t)
REMOVES(cudaGraphExecDestroy, kGraphExec, cudaGraphExec_t)
MAKES(cudaEventCreate, kEvent, 1, cudaEvent_t* made)
MAKES(cudaEventCreateWithFlags, kEvent, 1, cudaEvent_t* made, unsigned)
REMOVES(cudaEventDestroy, kEvent, cudaEvent_t)
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  CALL_OR_FAIL(cudaErrorLaunchFailure)
  Use("cudaEventRecord", event, kEvent);
  Use("cudaEventRecord", stream, kStream);
  return cudaSuccess;
}
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
  attributes->sharedSizeBytes = convlab::fake::kStaticShared;
  attributes->ptxVersion = attributes->binaryVersion =
      convlab::fake::GpuOf(convlab::fake::CurrentDevice()).capability;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute,
                                 int value) {
  CALL_OR_FAIL(cudaErrorInvalidDeviceFunction)
  return convlab::fake::AllowShared(function, value) ? cudaSuccess
                                                     : cudaErrorInvalidValue;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void*, int threads, size_t shared, unsigned) {
  CALL_OR_FAIL(cudaErrorInvalidDeviceFunction)
  *blocks = convlab::fake::ResidentBlocks(threads, shared);
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          const void* function,
                                                          int threads,
                                                          size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, function, threads, shared, 0);
}
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block,
                             void** arguments, size_t shared,
                             cudaStream_t stream) {
  CALL_OR_FAIL(cudaErrorLaunchOutOfResources)
  return Launch(function, grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config,
                                const void* function, void** arguments) {
  CALL_OR_FAIL(cudaErrorLaunchOutOfResources)
  return Launch(function, config->gridDim, config->blockDim, arguments,
                config->dynamicSmemBytes, config->stream);
}

// Of the driver.

static int ContextNumber(void*, unsigned long long* number) {
  *number = convlab::fake::ContextNumber();
  return 0;
}
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(
    const char* name, void** function, unsigned, unsigned long long,
    cudaDriverEntryPointQueryResult* result) {
  CALL_OR_FAIL(cudaErrorInitializationError)
  const bool known = std::strcmp(name, "cuCtxGetId") == 0;
  *function = known ? reinterpret_cast<void*>(ContextNumber) : nullptr;
  *result =
      known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
#endif

// What nvcc's code calls for <<<>>>.

#if CUDART_VERSION >= 13000
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                               void** arguments, size_t shared,
                               cudaStream_t stream) {
  CALL_OR_FAIL(cudaErrorLaunchOutOfResources)
  return Launch(kernel, grid, block, arguments, shared, stream);
}
#endif

}  // extern "C"
