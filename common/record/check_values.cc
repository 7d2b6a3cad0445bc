// Values that no run has. Reports compute with those of a record that passes,
// so that no sum of times overflows and no ratio divides by zero.
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/record/run_record.h"

namespace convlab {
namespace {

constexpr int64_t kDayNs = int64_t{24} * 3600 * 1000000000;
constexpr int64_t kMostImages = int64_t{1} << 40;
constexpr int64_t kMostOperations = int64_t{1} << 60;

// Keeps the first error.
class Checker {
 public:
  void Range(absl::string_view field, int64_t value, int64_t least,
             int64_t most) {
    if (!status_.ok() || (value >= least && value <= most)) return;
    status_ = absl::InvalidArgumentError(
        absl::StrCat(field, " is ", value, ", expected ", least, " to ", most));
  }
  // `least` is 0 for times of work that may not have happened, such as that of
  // kernels in an operation that launched none.
  void Times(absl::string_view field, const std::vector<int64_t>& times,
             int64_t least = 1) {
    for (size_t i = 0; i < times.size(); ++i) {
      if (times[i] >= least && times[i] <= kDayNs) continue;
      Range(absl::StrCat(field, "[", i, "]"), times[i], least, kDayNs);
    }
  }
  void Error(absl::string_view field, double value) {
    if (!status_.ok() || (std::isfinite(value) && value >= 0)) return;
    status_ = absl::InvalidArgumentError(absl::StrCat(
        field, " is ", value, ", expected a number that is not negative"));
  }
  void Counts(absl::string_view field, const std::vector<int64_t>& counts,
              int64_t most) {
    for (size_t i = 0; i < counts.size(); ++i) {
      Range(absl::StrCat(field, "[", i, "]"), counts[i], 0, most);
    }
  }

  absl::Status Take() { return status_; }

 private:
  absl::Status status_;
};

void Check(Checker& check, const std::string& where,
           const std::vector<ConvolutionRecord>& convolutions) {
  for (size_t i = 0; i < convolutions.size(); ++i) {
    const ConvolutionRecord& convolution = convolutions[i];
    const std::string here = absl::StrCat(where, ".convolutions[", i, "].");
    check.Range(here + "batch", convolution.batch, 0, kMostImages);
    check.Range(here + "channels", convolution.channels, 0, kMostImages);
    check.Range(here + "height", convolution.height, 0, kMostImages);
    check.Range(here + "width", convolution.width, 0, kMostImages);
    check.Range(here + "filters", convolution.filters, 0, kMostImages);
    check.Range(here + "kernel_size", convolution.kernel_size, 0, kMostImages);
    check.Range(here + "flops", convolution.flops, 0, kMostOperations);
    check.Range(here + "min_bytes", convolution.min_bytes, 0, kMostOperations);
    check.Times(here + "op_time_ns", convolution.op_time_ns);
    check.Times(here + "kernel_time_ns", convolution.kernel_time_ns, 0);
    check.Times(here + "whole_time_ns", convolution.whole_time_ns);
  }
}

void Check(Checker& check, const std::string& where,
           const VerificationRecord& verification) {
  check.Error(where + ".relative_error", verification.relative_error);
  check.Range(where + ".problems_tried", verification.problems_tried, 0,
              INT32_MAX);
  check.Range(where + ".problems_right", verification.problems_right, 0,
              verification.problems_tried);
  check.Range(where + ".judge_version", verification.judge_version, 0,
              INT32_MAX);
}

void Check(Checker& check, const std::string& where,
           const ProfileSection& section) {
  for (size_t i = 0; i < section.entries.size(); ++i) {
    const ProfileEntry& entry = section.entries[i];
    const std::string here = absl::StrCat(where, ".entries[", i, "].");
    check.Range(here + "calls", entry.calls.value_or(0), 0, kMostImages);
    check.Range(here + "total_ns", entry.total_ns.value_or(0), 0, kDayNs);
    check.Range(here + "min_ns", entry.min_ns.value_or(0), 0, kDayNs);
    check.Range(here + "max_ns", entry.max_ns.value_or(0), 0, kDayNs);
    check.Range(here + "bytes", entry.bytes.value_or(0), 0, kMostOperations);
    check.Error(here + "average_ns", entry.average_ns.value_or(0));
    check.Error(here + "printed_share", entry.printed_share.value_or(0));
  }
}

void CheckLadder(Checker& check, const RunRecord& record) {
  for (size_t i = 0; i < record.ladder.size(); ++i) {
    const LadderRun& run = record.ladder[i];
    const std::string here = absl::StrCat("record.ladder[", i, "]");
    check.Error(here + ".relative_error", run.relative_error);
    check.Range(here + ".correct", run.correct, 0, record.size);
    check.Counts(here + ".repetitions_correct", run.repetitions_correct,
                 record.size);
    check.Times(here + ".inference_ns", run.inference_ns);
    Check(check, here, run.convolutions);
  }
  for (size_t i = 0; i < record.peers.size(); ++i) {
    const std::string here = absl::StrCat("record.peers[", i, "].");
    check.Error(here + "relative_error", record.peers[i].relative_error);
    check.Times(here + "kernel_time_ns", record.peers[i].kernel_time_ns);
  }
  for (size_t i = 0; i < record.overlaps.size(); ++i) {
    const std::string here = absl::StrCat("record.overlaps[", i, "].");
    check.Range(here + "images", record.overlaps[i].images, 0, kMostImages);
    check.Times(here + "serial_ns", record.overlaps[i].serial_ns);
    check.Times(here + "overlapped_ns", record.overlaps[i].overlapped_ns);
  }
}

}  // namespace

absl::Status CheckValues(const RunRecord& record) {
  Checker check;
  check.Range("record.size", record.size, 0, kMostImages);
  check.Range("record.slice", record.slice, 0, kMostImages);
  check.Range("record.correct", record.correct, 0, record.size);
  check.Counts("record.repetitions_correct", record.repetitions_correct,
               record.size);
  check.Range("record.expected_correct", record.expected_correct.value_or(0), 0,
              record.size);
  check.Range("record.load_ns", record.load_ns, 0, kDayNs);
  check.Range("record.prepare_ns", record.prepare_ns, 0, kDayNs);
  check.Range("record.usage.elapsed_ns", record.usage.elapsed_ns, 0, kDayNs);
  check.Range("record.usage.user_ns", record.usage.user_ns, 0, 10000 * kDayNs);
  check.Range("record.usage.system_ns", record.usage.system_ns, 0,
              10000 * kDayNs);
  check.Times("record.inference_ns", record.inference_ns);
  Check(check, "record", record.convolutions);
  for (const auto& [name, variant] : record.variants) {
    if (!variant.verification) continue;
    Check(check, absl::StrCat("record.variants.", name, ".verification"),
          *variant.verification);
  }
  CheckLadder(check, record);
  if (record.profile) {
    Check(check, "record.profile.gpu_activities",
          record.profile->gpu_activities);
    Check(check, "record.profile.api_calls", record.profile->api_calls);
  }
  return check.Take();
}

}  // namespace convlab
