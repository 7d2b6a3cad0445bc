// Copying images to the GPU, also while its work has started already.
#ifndef KERNELS_COMPILED_GPU_UPLOAD_H_
#define KERNELS_COMPILED_GPU_UPLOAD_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/parallel/parallel.h"
#include "kernels/cuda/device.h"

namespace convlab {

// Copies by one thread, or by several where that is worth waking them, to
// pinned memory from which the GPU reads next.
void CopyForGpu(const uint8_t* from, int64_t bytes, uint8_t* to,
                Workers& workers);

// A copy from the host's memory through pinned memory to the device, of which
// the second half is queued first:
//
//   RETURN_IF_ERROR(upload.Queue(bytes, pinned, device, stream));  // or record
//   upload.Expect(bytes);
//   ... start what was recorded ...
//   upload.Copy(from, bytes, pinned, workers);
//   ... wait ...
//   if (upload.TakeMissed()) ... start it again ...
//
// Before Expect, and once Copy has returned, queued copies find all bytes
// there. Both memories begin at multiples of 16 bytes.
class OverlappedUpload {
 public:
  // Whether there are words for so many bytes, and the host can copy them
  // before the GPU gives them up. No other function may be called with more.
  static bool Takes(int64_t bytes) { return bytes <= kMostBytes; }

  static absl::StatusOr<OverlappedUpload> Allocate();

  absl::Status Queue(int64_t bytes, const void* pinned, void* device,
                     CUstream_st* stream) const;

  void Expect(int64_t bytes) const;
  void Copy(const uint8_t* from, int64_t bytes, uint8_t* pinned,
            Workers& workers) const;

  // Whether a queued copy that has ended gave up before Copy was done: the host
  // was stopped, or starting work waits for its end, as under a profiler. Only
  // the first call tells.
  bool TakeMissed() const;

 private:
  static constexpr int64_t kMostBytes = 4 << 20;
  static constexpr int64_t kPartBytes = 32 << 10;
  static constexpr int64_t kMostParts = kMostBytes / kPartBytes;
  using Word = std::atomic<uint32_t>;
  static_assert(sizeof(Word) == sizeof(uint32_t));

  Word& there(int64_t part) const;
  Word& missed() const { return there(kMostParts); }
  static int64_t Parts(int64_t bytes) {
    return (bytes + kPartBytes - 1) / kPartBytes;
  }

  cuda::PinnedBuffer words_;
};

}  // namespace convlab

#endif  // KERNELS_COMPILED_GPU_UPLOAD_H_
