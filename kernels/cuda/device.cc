#include "kernels/cuda/device.h"

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {
namespace {

// Returns at least 1, or Unavailable: there is no driver, no device, or the
// driver is too old for the runtime.
absl::StatusOr<int> DeviceCount() {
  // Cached, because every Run of a convolution asks and devices do not change
  // during a process.
  static std::atomic<int> known = 0;
  int count = known;
  if (count > 0) return count;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return known = count;
  // Without a driver CUDA calls it too old.
  int driver = 0;
  const bool has_driver =
      cudaDriverGetVersion(&driver) != cudaSuccess || driver > 0;
  return absl::UnavailableError(
      absl::StrCat("no NVIDIA GPU can be used: ",
                   !has_driver           ? "no NVIDIA driver is installed"
                   : code == cudaSuccess ? "the driver sees none"
                                         : cudaGetErrorString(code)));
}

}  // namespace

absl::Status ToStatus(const Error& error) {
  if (!error.failed()) return absl::OkStatus();
  const std::string message = absl::StrCat(error.call, ": ", error.reason);
  return error.out_of_memory ? absl::ResourceExhaustedError(message)
                             : absl::InternalError(message);
}

absl::StatusOr<DeviceFacts> FindDevice() {
  ASSIGN_OR_RETURN(const int device, CurrentDeviceNumber());
  cudaDeviceProp properties;
  RETURN_IF_ERROR(CudaStatus(cudaGetDeviceProperties(&properties, device),
                             "cudaGetDeviceProperties"));
  DeviceFacts facts;
  facts.name = properties.name;
  facts.compute_capability = 10 * properties.major + properties.minor;
  facts.multiprocessors = properties.multiProcessorCount;
  facts.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  facts.l2_bytes = properties.l2CacheSize;
  // CUDA 13 removed these fields from cudaDeviceProp.
  for (const auto& [attribute, value] :
       {std::pair(cudaDevAttrClockRate, &facts.multiprocessor_clock_khz),
        std::pair(cudaDevAttrMemoryClockRate, &facts.memory_clock_khz),
        std::pair(cudaDevAttrGlobalMemoryBusWidth, &facts.memory_bus_bits)}) {
    RETURN_IF_ERROR(CudaStatus(cudaDeviceGetAttribute(value, attribute, device),
                               "cudaDeviceGetAttribute"));
  }
  char pci_bus_id[32];
  RETURN_IF_ERROR(
      CudaStatus(cudaDeviceGetPCIBusId(pci_bus_id, sizeof(pci_bus_id), device),
                 "cudaDeviceGetPCIBusId"));
  facts.pci_bus_id = pci_bus_id;
  RETURN_IF_ERROR(CudaStatus(cudaDriverGetVersion(&facts.driver_version),
                             "cudaDriverGetVersion"));
  RETURN_IF_ERROR(CudaStatus(cudaRuntimeGetVersion(&facts.runtime_version),
                             "cudaRuntimeGetVersion"));
  return facts;
}

int CountDevices() { return DeviceCount().value_or(0); }

absl::StatusOr<int> CurrentDeviceNumber() {
  RETURN_IF_ERROR(DeviceCount().status());
  int device = 0;
  RETURN_IF_ERROR(CudaStatus(cudaGetDevice(&device), "cudaGetDevice"));
  return device;
}

absl::StatusOr<std::vector<PeerLink>> PeerLinks() {
  std::vector<PeerLink> links;
  const int devices = CountDevices();
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      if (from == to) continue;
      int access = 0, atomics = 0, rank = 0;
      for (const auto& [attribute, value] :
           {std::pair(cudaDevP2PAttrAccessSupported, &access),
            std::pair(cudaDevP2PAttrNativeAtomicSupported, &atomics),
            std::pair(cudaDevP2PAttrPerformanceRank, &rank)}) {
        RETURN_IF_ERROR(
            CudaStatus(cudaDeviceGetP2PAttribute(value, attribute, from, to),
                       "cudaDeviceGetP2PAttribute"));
      }
      links.push_back({from, to, access != 0, atomics != 0, rank});
    }
  }
  return links;
}

CurrentDevice::CurrentDevice(int device) {
  int current = 0;
  // Without a usable GPU this call fails or returns a device that does not
  // exist.
  if (cudaGetDevice(&current) == cudaSuccess && current == device) {
    status_ = DeviceCount().status();
    return;
  }
  const absl::StatusOr<int> count = DeviceCount();
  if (!count.ok()) {
    status_ = count.status();
    return;
  }
  if (device < 0 || device >= *count) {
    status_ = absl::UnavailableError(absl::StrCat(
        "there is no GPU ", device, ": expected 0 to ", *count - 1));
    return;
  }
  status_ = CudaStatus(cudaSetDevice(device), "cudaSetDevice");
  if (status_.ok()) previous_ = current;
}

CurrentDevice::~CurrentDevice() {
  if (previous_ >= 0) cudaSetDevice(previous_);
}

absl::StatusOr<int64_t> FreeMemory() {
  size_t free_bytes, total_bytes;
  RETURN_IF_ERROR(
      CudaStatus(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo"));
  return static_cast<int64_t>(free_bytes);
}

absl::Status Synchronize() {
  return CudaStatus(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void DropPersistingLines() {
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0);
  cudaCtxResetPersistingL2Cache();
  // A refusal is not the next call's error.
  cudaGetLastError();
}

absl::Status StartProfiler() {
  return CudaStatus(cudaProfilerStart(), "cudaProfilerStart");
}

absl::Status StopProfiler() {
  return CudaStatus(cudaProfilerStop(), "cudaProfilerStop");
}

absl::Status CopyToDevice(void* device, const void* host, int64_t bytes) {
  return CudaStatus(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice),
                    "cudaMemcpy to the device");
}

absl::Status CopyToHost(void* host, const void* device, int64_t bytes) {
  return CudaStatus(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost),
                    "cudaMemcpy to the host");
}

absl::Status QueueCopy(void* to, const void* from, int64_t bytes,
                       CUstream_st* stream) {
  return CudaStatus(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
                    "cudaMemcpyAsync");
}

absl::Status FillBytes(void* device, uint8_t value, int64_t bytes) {
  return CudaStatus(cudaMemset(device, value, bytes), "cudaMemset");
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::Allocate(int64_t bytes) {
  DeviceBuffer buffer;
  if (cudaError_t code = cudaMalloc(&buffer.data_, bytes);
      code != cudaSuccess) {
    return Annotate(CudaStatus(code, "cudaMalloc"),
                    absl::StrCat(bytes, " bytes"));
  }
  buffer.bytes_ = bytes;
  return buffer;
}

// To free nothing would load the driver.
DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) cudaFree(data_);
}

absl::StatusOr<PinnedBuffer> PinnedBuffer::Allocate(int64_t bytes) {
  PinnedBuffer buffer;
  RETURN_IF_ERROR(
      CudaStatus(cudaMallocHost(&buffer.data_, bytes), "cudaMallocHost"));
  return buffer;
}

PinnedBuffer::~PinnedBuffer() {
  if (data_ != nullptr) cudaFreeHost(data_);
}

absl::StatusOr<PinnedRange> PinnedRange::Lock(void* data, int64_t bytes) {
  RETURN_IF_ERROR(
      CudaStatus(cudaHostRegister(data, bytes, cudaHostRegisterPortable),
                 "cudaHostRegister"));
  PinnedRange range;
  range.data_ = data;
  return range;
}

PinnedRange::~PinnedRange() {
  if (data_ != nullptr) cudaHostUnregister(data_);
}

bool IsPinned(const void* data, int64_t bytes) {
  const auto* const begin = static_cast<const char*>(data);
  for (const char* const byte : {begin, begin + bytes - 1}) {
    cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, byte) != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    if (attributes.type != cudaMemoryTypeHost) return false;
  }
  return true;
}

absl::StatusOr<DeviceStream> DeviceStream::Create() {
  DeviceStream stream;
  RETURN_IF_ERROR(CudaStatus(
      cudaStreamCreateWithFlags(&stream.stream_, cudaStreamNonBlocking),
      "cudaStreamCreateWithFlags"));
  return stream;
}

DeviceStream::~DeviceStream() {
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

absl::Status DeviceStream::Synchronize() const {
  return CudaStatus(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

absl::StatusOr<bool> DeviceStream::HasEnded() const {
  const cudaError_t error = cudaStreamQuery(stream_);
  if (error == cudaErrorNotReady) {
    // It would be the last error of whatever asks for that next.
    cudaGetLastError();
    return false;
  }
  RETURN_IF_ERROR(CudaStatus(error, "cudaStreamQuery"));
  return true;
}

absl::StatusOr<Event> Event::Create() {
  Event event;
  RETURN_IF_ERROR(
      CudaStatus(cudaEventCreate(reinterpret_cast<cudaEvent_t*>(&event.event_)),
                 "cudaEventCreate"));
  return event;
}

Event::~Event() {
  if (event_ != nullptr) cudaEventDestroy(static_cast<cudaEvent_t>(event_));
}

absl::Status Event::Record(CUstream_st* stream) {
  return CudaStatus(cudaEventRecord(static_cast<cudaEvent_t>(event_), stream),
                    "cudaEventRecord");
}

absl::StatusOr<int64_t> Event::Since(const Event& start) const {
  RETURN_IF_ERROR(
      CudaStatus(cudaEventSynchronize(static_cast<cudaEvent_t>(event_)),
                 "cudaEventSynchronize"));
  float milliseconds = 0;
  RETURN_IF_ERROR(
      CudaStatus(cudaEventElapsedTime(&milliseconds,
                                      static_cast<cudaEvent_t>(start.event_),
                                      static_cast<cudaEvent_t>(event_)),
                 "cudaEventElapsedTime"));
  return static_cast<int64_t>(milliseconds * 1e6);
}

}  // namespace convlab::cuda
