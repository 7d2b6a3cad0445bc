// Implements device.h in a build without the CUDA Toolkit: no GPU is found, so
// that the other functions are never reached.
#include "kernels/cuda/device.h"

namespace convlab::cuda {
namespace {

absl::Status NoCuda() {
  return absl::UnavailableError(
      "no NVIDIA GPU can be used: this program was built without the CUDA "
      "Toolkit");
}

}  // namespace

absl::Status ToStatus(const Error&) { return NoCuda(); }
absl::StatusOr<DeviceFacts> FindDevice() { return NoCuda(); }
int CountDevices() { return 0; }
absl::StatusOr<int> CurrentDeviceNumber() { return NoCuda(); }
absl::StatusOr<std::vector<PeerLink>> PeerLinks() { return NoCuda(); }
CurrentDevice::CurrentDevice(int) : status_(NoCuda()) {}
CurrentDevice::~CurrentDevice() {}
absl::StatusOr<int64_t> FreeMemory() { return NoCuda(); }
absl::Status Synchronize() { return NoCuda(); }
void DropPersistingLines() {}
absl::Status StartProfiler() { return NoCuda(); }
absl::Status StopProfiler() { return NoCuda(); }
absl::Status CopyToDevice(void*, const void*, int64_t) { return NoCuda(); }
absl::Status CopyToHost(void*, const void*, int64_t) { return NoCuda(); }
absl::Status QueueCopy(void*, const void*, int64_t, CUstream_st*) {
  return NoCuda();
}
absl::Status FillBytes(void*, uint8_t, int64_t) { return NoCuda(); }
absl::StatusOr<DeviceBuffer> DeviceBuffer::Allocate(int64_t) {
  return NoCuda();
}
// Not defaulted here: a trivial function would have to be in the header.
DeviceBuffer::~DeviceBuffer() {}
absl::StatusOr<PinnedBuffer> PinnedBuffer::Allocate(int64_t) {
  return NoCuda();
}
PinnedBuffer::~PinnedBuffer() {}
absl::StatusOr<PinnedRange> PinnedRange::Lock(void*, int64_t) {
  return NoCuda();
}
PinnedRange::~PinnedRange() {}
bool IsPinned(const void*, int64_t) { return false; }
absl::StatusOr<DeviceStream> DeviceStream::Create() { return NoCuda(); }
DeviceStream::~DeviceStream() {}
absl::Status DeviceStream::Synchronize() const { return NoCuda(); }
absl::StatusOr<bool> DeviceStream::HasEnded() const { return NoCuda(); }
absl::StatusOr<Event> Event::Create() { return NoCuda(); }
Event::~Event() {}
absl::Status Event::Record(CUstream_st*) { return NoCuda(); }
absl::StatusOr<int64_t> Event::Since(const Event&) const { return NoCuda(); }

}  // namespace convlab::cuda
