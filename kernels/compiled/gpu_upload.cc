#include "kernels/compiled/gpu_upload.h"

#include <algorithm>
#include <new>
#include <utility>

#include "common/status/status.h"
#include "kernels/compiled/cuda/pull.h"
#include "kernels/cuda/copy_past_caches.h"
#include "kernels/cuda/error.h"

namespace convlab {
namespace {

// What a thread copies at a time, and what one thread copies alone, because
// others take so long to wake.
constexpr int64_t kCopyBytes = 256 << 10, kAlone = 512 << 10;

}  // namespace

void CopyForGpu(const uint8_t* from, int64_t bytes, uint8_t* to,
                Workers& workers) {
  if (bytes <= kAlone) {
    cuda::CopyPastCaches(from, bytes, to);
    return;
  }
  workers.For(bytes, kCopyBytes, [&](int, int64_t begin, int64_t end) {
    cuda::CopyPastCaches(from + begin, end - begin, to + begin);
  });
}

absl::StatusOr<OverlappedUpload> OverlappedUpload::Allocate() {
  OverlappedUpload upload;
  constexpr int64_t kWords = (kMostParts + 1) * cuda::kPullWordStride;
  ASSIGN_OR_RETURN(upload.words_,
                   cuda::PinnedBuffer::Allocate(kWords * sizeof(Word)));
  for (int64_t i = 0; i < kMostParts; ++i) new (&upload.there(i)) Word(1);
  new (&upload.missed()) Word(0);
  return upload;
}

OverlappedUpload::Word& OverlappedUpload::there(int64_t part) const {
  return static_cast<Word*>(words_.data())[part * cuda::kPullWordStride];
}

absl::Status OverlappedUpload::Queue(int64_t bytes, const void* pinned,
                                     void* device, CUstream_st* stream) const {
  const auto* const words = static_cast<const uint32_t*>(words_.data());
  auto* const missed_word = reinterpret_cast<uint32_t*>(&missed());
  return cuda::ToStatus(cuda::LaunchPull(
      {pinned, device, bytes, kPartBytes, words, missed_word}, stream));
}

void OverlappedUpload::Expect(int64_t bytes) const {
  for (int64_t i = 0; i < Parts(bytes); ++i) {
    there(i).store(0, std::memory_order_relaxed);
  }
  missed().store(0, std::memory_order_release);
}

void OverlappedUpload::Copy(const uint8_t* from, int64_t bytes, uint8_t* pinned,
                            Workers& workers) const {
  const auto copy = [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      const int64_t begin = part * kPartBytes;
      const int64_t end = std::min(begin + kPartBytes, bytes);
      cuda::CopyPastCaches(from + begin, end - begin, pinned + begin);
      there(part).store(1, std::memory_order_release);
    }
  };
  if (bytes <= kAlone) {
    copy(0, Parts(bytes));
    return;
  }
  workers.For(Parts(bytes), /*grain=*/2,
              [&](int, int64_t first, int64_t last) { copy(first, last); });
}

bool OverlappedUpload::TakeMissed() const {
  return missed().exchange(0, std::memory_order_acq_rel) != 0;
}

}  // namespace convlab
