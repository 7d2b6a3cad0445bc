#include "kernels/measure/guarded_buffer.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/math/rounding.h"
#include "common/status/status.h"

namespace convlab::cuda {
namespace {

// A float of these bytes is NaN.
constexpr uint8_t kZone = 0xff;
constexpr uint32_t kZoneWord = 0xffffffff;
constexpr int64_t kAlignment = 256;  // as cudaMalloc's

}  // namespace

absl::StatusOr<GuardedBuffer> GuardedBuffer::Allocate(const char* name,
                                                      int64_t bytes) {
  GuardedBuffer guarded;
  guarded.name_ = name;
  guarded.bytes_ = bytes;
  ASSIGN_OR_RETURN(
      guarded.buffer_,
      DeviceBuffer::Allocate(RoundUp(bytes, kAlignment) + 2 * kZoneBytes));
  RETURN_IF_ERROR(
      FillBytes(guarded.buffer_.data(), kZone, guarded.buffer_.bytes()));
  return guarded;
}

absl::Status GuardedBuffer::RestoreZones() const {
  const int64_t end = RoundUp(bytes_, int64_t{4});
  RETURN_IF_ERROR(FillBytes(buffer_.data(), kZone, kZoneBytes));
  return FillBytes(static_cast<char*>(data()) + end, kZone,
                   buffer_.bytes() - kZoneBytes - end);
}

absl::StatusOr<std::string> GuardedBuffer::CheckZones(
    const WordSums& words) const {
  // A tensor of halves may end within a word, which counts as its own.
  const int64_t end = RoundUp(bytes_, int64_t{4});
  const char* const begin = static_cast<const char*>(data());
  const int64_t behind = buffer_.bytes() - kZoneBytes - end;
  ASSIGN_OR_RETURN(int64_t intact, words.Count(begin + end, behind, kZoneWord));
  ASSIGN_OR_RETURN(const int64_t intact_before,
                   words.Count(buffer_.data(), kZoneBytes, kZoneWord));
  intact += intact_before;
  if (intact * int64_t{sizeof(kZoneWord)} == behind + kZoneBytes) {
    return std::string();
  }
  std::vector<uint8_t> zone(std::max(kZoneBytes, behind));
  RETURN_IF_ERROR(CopyToHost(zone.data(), begin + end, behind));
  for (int64_t i = behind - 1; i >= 0; --i) {
    if (zone[i] != kZone) {
      return absl::StrCat("wrote ", i + 1 + end - bytes_, " bytes behind ",
                          name_, " in device memory");
    }
  }
  RETURN_IF_ERROR(CopyToHost(zone.data(), buffer_.data(), kZoneBytes));
  for (int64_t i = 0; i < kZoneBytes; ++i) {
    if (zone[i] != kZone) {
      return absl::StrCat("wrote ", kZoneBytes - i, " bytes before ", name_,
                          " in device memory");
    }
  }
  return std::string();
}

}  // namespace convlab::cuda
