// GPUs for host code: their properties, memory and events. The header is free
// of CUDA types, so that its users need no toolkit headers. Functions without a
// device argument work on the calling thread's current device, which is device
// 0 unless CurrentDevice chose another.
#ifndef KERNELS_CUDA_DEVICE_H_
#define KERNELS_CUDA_DEVICE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct CUstream_st;  // cudaStream_t is a pointer to one

namespace convlab::cuda {

struct Error;

// Converts an error: Internal, or ResourceExhausted if memory ran out, as in
// "cudaMalloc(...): out of memory"; OK if nothing failed.
absl::Status ToStatus(const Error& error);

struct DeviceFacts {
  std::string name;            // "NVIDIA H200"
  int compute_capability = 0;  // 90 for 9.0
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  int multiprocessor_clock_khz = 0;  // the highest that the card allows
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  std::string pci_bus_id;   // "0000:1b:00.0"
  int driver_version = 0;   // 13000 for 13.0, the newest CUDA that it supports
  int runtime_version = 0;  // the CUDA version of this build
};

// Returns the properties of the current device, or Unavailable with the reason
// if there is no usable GPU.
absl::StatusOr<DeviceFacts> FindDevice();

// The number of usable GPUs.
int CountDevices();

// The calling thread's current device, for those who are asked for a number.
absl::StatusOr<int> CurrentDeviceNumber();

// What connects two GPUs, as CUDA tells.
struct PeerLink {
  int from = 0, to = 0;
  bool access = false;   // `from` reads and writes the other's memory
  bool atomics = false;  // atomically too: NVLink, as a rule
  int rank = 0;          // of links: the lower the faster
};

// Of each pair of usable GPUs, in both directions.
absl::StatusOr<std::vector<PeerLink>> PeerLinks();

// Makes a device the calling thread's current one for the object's lifetime.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();

  // Unavailable, with the reason, if there is no such device.
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
  int previous_ = -1;  // to be restored; -1: nothing was changed
};

// Bytes of device memory that can still be allocated.
absl::StatusOr<int64_t> FreeMemory();

// Waits for all work on the device; an error may be that of an earlier launch.
absl::Status Synchronize();

// Makes the L2 cache forget the lines that an earlier kernel asked it to keep,
// and keeps it from keeping more. Devices that keep none ignore it.
void DropPersistingLines();

// Mark where a profiler that waits for these calls begins and ends (ncu
// --profile-from-start off). Without a profiler they do nothing.
absl::Status StartProfiler();
absl::Status StopProfiler();

// Copy from pageable or pinned host memory, and to it; both return when the
// copy is complete.
absl::Status CopyToDevice(void* device, const void* host, int64_t bytes);
absl::Status CopyToHost(void* host, const void* device, int64_t bytes);
// Queues a copy in the stream between device memory and pinned host memory, in
// either direction, or within the device.
absl::Status QueueCopy(void* to, const void* from, int64_t bytes,
                       CUstream_st* stream);
absl::Status FillBytes(void* device, uint8_t value, int64_t bytes);

// Memory on the device, freed with the object. Movable.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  // ResourceExhausted if there is not enough.
  static absl::StatusOr<DeviceBuffer> Allocate(int64_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceBuffer();

  void* data() const { return data_; }
  float* floats() const { return static_cast<float*>(data_); }
  int64_t bytes() const { return bytes_; }

 private:
  void swap(DeviceBuffer& other) {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Page-locked host memory, from which copies overlap with kernels. Movable.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  static absl::StatusOr<PinnedBuffer> Allocate(int64_t bytes);
  PinnedBuffer(PinnedBuffer&& other) noexcept { std::swap(data_, other.data_); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~PinnedBuffer();

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

// Memory of somebody else's that is page-locked as long as this lives. Movable.
class PinnedRange {
 public:
  PinnedRange() = default;
  static absl::StatusOr<PinnedRange> Lock(void* data, int64_t bytes);
  PinnedRange(PinnedRange&& other) noexcept { std::swap(data_, other.data_); }
  PinnedRange& operator=(PinnedRange&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~PinnedRange();

 private:
  void* data_ = nullptr;
};

// Whether the first and the last byte are page-locked, as all are of memory
// that was allocated or locked in one piece.
bool IsPinned(const void* data, int64_t bytes);

// A stream on the device that is current when it is created. Its work overlaps
// with that of other streams; the default stream does not wait for it. Movable.
class DeviceStream {
 public:
  static absl::StatusOr<DeviceStream> Create();
  DeviceStream(DeviceStream&& other) noexcept {
    std::swap(stream_, other.stream_);
  }
  DeviceStream& operator=(DeviceStream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~DeviceStream();

  CUstream_st* get() const { return stream_; }

  // Waits for the stream's work; an error may be that of an earlier launch.
  absl::Status Synchronize() const;
  // Whether all of it has ended, without waiting; errors are those of
  // Synchronize.
  absl::StatusOr<bool> HasEnded() const;

 private:
  DeviceStream() = default;
  CUstream_st* stream_ = nullptr;
};

// A point in a stream's work, with a time. Movable.
class Event {
 public:
  static absl::StatusOr<Event> Create();
  Event(Event&& other) noexcept { std::swap(event_, other.event_); }
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event();

  // Null is the default stream.
  absl::Status Record(CUstream_st* stream = nullptr);
  // Nanoseconds from `start` to this event; waits for both.
  absl::StatusOr<int64_t> Since(const Event& start) const;

 private:
  Event() = default;
  void* event_ = nullptr;  // cudaEvent_t
};

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_DEVICE_H_
