// Collects what is wrong with the values of a record, which is input like any
// other file.
#ifndef COMMON_RECORD_VALUE_CHECKER_H_
#define COMMON_RECORD_VALUE_CHECKER_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status/status.h"

namespace convlab {

inline constexpr int64_t kDayNs = int64_t{24} * 3600 * 1000000000;
inline constexpr int64_t kMostImages = int64_t{1} << 40;
inline constexpr int64_t kMostOperations = int64_t{1} << 60;
inline constexpr int64_t kMostBytes = int64_t{1} << 60;

// Keeps the first error, which names the field.
class ValueChecker {
 public:
  void Range(absl::string_view field, int64_t value, int64_t least,
             int64_t most) {
    if (value >= least && value <= most) return;
    Fail(
        absl::StrCat(field, " is ", value, ", expected ", least, " to ", most));
  }
  // The sizes of a convolution for at least `least` images.
  template <typename Row>
  void Sizes(absl::string_view here, const Row& row, int64_t least) {
    Range(absl::StrCat(here, "batch"), row.batch, least, kMostImages);
    Range(absl::StrCat(here, "channels"), row.channels, 0, kMostImages);
    Range(absl::StrCat(here, "height"), row.height, 0, kMostImages);
    Range(absl::StrCat(here, "width"), row.width, 0, kMostImages);
    Range(absl::StrCat(here, "filters"), row.filters, 0, kMostImages);
    Range(absl::StrCat(here, "kernel_size"), row.kernel_size, 0, kMostImages);
  }
  // What the machine has may be unknown, and then 0.
  template <typename Host>
  void HostMachine(const Host& host) {
    Range("record.host.cores", host.cores, 0, INT32_MAX);
    Range("record.host.memory_bytes", host.memory_bytes, 0, kMostBytes);
  }
  template <typename Host, typename Gpu>
  void Machine(const Host& host, const Gpu& gpu) {
    HostMachine(host);
    Range("record.gpu.compute_capability", gpu.compute_capability, 0,
          INT32_MAX);
    Range("record.gpu.multiprocessors", gpu.multiprocessors, 0, INT32_MAX);
    Range("record.gpu.memory_bytes", gpu.memory_bytes, 0, kMostBytes);
    Range("record.gpu.multiprocessor_clock_khz", gpu.multiprocessor_clock_khz,
          0, INT32_MAX);
    Range("record.gpu.memory_clock_khz", gpu.memory_clock_khz, 0, INT32_MAX);
  }
  // `least` is 0 for times of work that may not have happened, such as that of
  // kernels in an operation that launched none. No run takes more than a day,
  // so that sums of times do not overflow either.
  void Times(absl::string_view field, const std::vector<int64_t>& times,
             int64_t least = 1) {
    int64_t sum = 0;
    for (size_t i = 0; i < times.size(); ++i) {
      if (times[i] < least || times[i] > kDayNs) {
        return Range(absl::StrCat(field, "[", i, "]"), times[i], least, kDayNs);
      }
      sum += times[i];
      if (sum > kDayNs) {
        return Fail(absl::StrCat(field, " adds up to more than a day"));
      }
    }
  }
  void Counts(absl::string_view field, const std::vector<int64_t>& counts,
              int64_t most) {
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] >= 0 && counts[i] <= most) continue;
      return Range(absl::StrCat(field, "[", i, "]"), counts[i], 0, most);
    }
  }
  // An error, a rate or another quantity.
  void NotNegative(absl::string_view field, double value) {
    if (value >= 0 && value <= std::numeric_limits<double>::max()) return;
    Fail(absl::StrCat(field, " is ", value,
                      ", expected a number that is not negative"));
  }
  void Positive(absl::string_view field, double value, double most) {
    if (value > 0 && value <= most) return;
    Fail(absl::StrCat(field, " is ", value, ", expected more than 0 and at ",
                      "most ", most));
  }
  // What is written may not be longer when it is read again
  // (common/json/json_fields.h).
  void Text(absl::string_view field, absl::string_view text) {
    Range(absl::StrCat(field, "'s length"),
          static_cast<int64_t>(BytesAsUtf8(text)), 0, 1 << 16);
  }
  void Fail(absl::string_view error) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(error);
  }

  absl::Status Take() { return status_; }

 private:
  absl::Status status_;
};

}  // namespace convlab

#endif  // COMMON_RECORD_VALUE_CHECKER_H_
