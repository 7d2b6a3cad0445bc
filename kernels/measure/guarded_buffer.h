// Device memory between red zones, which show what was written beside it.
#ifndef KERNELS_MEASURE_GUARDED_BUFFER_H_
#define KERNELS_MEASURE_GUARDED_BUFFER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/gpu_loads.h"

namespace convlab::cuda {

class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  // `name` is the tensor's in messages, and static. The memory and its zones
  // hold NaN at first.
  static absl::StatusOr<GuardedBuffer> Allocate(const char* name,
                                                int64_t bytes);

  void* data() const { return static_cast<char*>(buffer_.data()) + kZoneBytes; }
  float* floats() const { return static_cast<float*>(data()); }
  int64_t bytes() const { return bytes_; }
  // With the zones.
  int64_t allocated_bytes() const { return buffer_.bytes(); }

  absl::Status RestoreZones() const;
  // Describes the damage that lies farthest out, or returns an empty text.
  absl::StatusOr<std::string> CheckZones(const WordSums& words) const;

 private:
  // Larger than the row or image by which a wrong index is off in most cases,
  // and small beside the tensors.
  static constexpr int64_t kZoneBytes = int64_t{4} << 20;

  const char* name_ = "";
  int64_t bytes_ = 0;
  DeviceBuffer buffer_;
};

}  // namespace convlab::cuda

#endif  // KERNELS_MEASURE_GUARDED_BUFFER_H_
