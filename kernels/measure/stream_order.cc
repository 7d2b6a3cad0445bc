#include "kernels/measure/stream_order.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "common/status/status.h"
#include "kernels/convolution/checking/poison.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/gpu_loads.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

// An operation that is too long to have written anything in a third of this
// goes on for long enough behind its stream's end that GpuTimer sees it.
constexpr auto kHeld = std::chrono::milliseconds(30);
// Of y, at so many places with equal distances.
constexpr int64_t kPlaces = 16;
constexpr int64_t kPlaceBytes = 4096;

}  // namespace

absl::Status CheckStreamOrder(const std::function<absl::Status()>& run, void* y,
                              int64_t bytes) {
  ASSIGN_OR_RETURN(const cuda::DeviceStream aside,
                   cuda::DeviceStream::Create());
  const int64_t piece = std::min(bytes, kPlaceBytes) / 4 * 4;
  ASSIGN_OR_RETURN(const auto pinned,
                   cuda::PinnedBuffer::Allocate(kPlaces * kPlaceBytes));
  RETURN_IF_ERROR(cuda::FillBytes(y, kPoison, bytes));
  RETURN_IF_ERROR(cuda::Synchronize());
  const Clock::time_point start = Clock::now();
  RETURN_IF_ERROR(cuda::StartWait(
      static_cast<int>(std::chrono::microseconds(kHeld).count())));
  RETURN_IF_ERROR(run());
  std::this_thread::sleep_for(kHeld / 3);
  char* const read = static_cast<char*>(pinned.data());
  for (int64_t i = 0; i < kPlaces; ++i) {
    const int64_t place = (bytes - piece) / (kPlaces - 1) * i / 4 * 4;
    RETURN_IF_ERROR(cuda::QueueCopy(read + i * piece,
                                    static_cast<const char*>(y) + place, piece,
                                    aside.get()));
  }
  RETURN_IF_ERROR(aside.Synchronize());
  const bool held = Clock::now() - start < kHeld;
  RETURN_IF_ERROR(cuda::Synchronize());
  if (!held) return absl::OkStatus();
  for (int64_t i = 0; i < kPlaces * piece; i += sizeof(kPoisonedWord)) {
    uint32_t word;
    std::memcpy(&word, read + i, sizeof(word));
    if (word == kPoisonedWord) continue;
    return absl::DataLossError(
        "the output was written while the stream was held: it does not run in "
        "the stream that it was given");
  }
  return absl::OkStatus();
}

}  // namespace convlab
