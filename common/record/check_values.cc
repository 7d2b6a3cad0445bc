// Values that no run has. Reports compute with those of a record that passes,
// so that no sum of times overflows, no ratio divides by zero, and no table is
// drawn of a network that is none.
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/network/network.h"
#include "common/record/run_record.h"
#include "common/record/value_checker.h"

namespace convlab {
namespace {

// More than any network of ours has, or any ladder.
constexpr size_t kMostConvolutions = 64;
constexpr size_t kMostRungs = 256;

// The sizes must be the network's, if it is one that we know: floors and ratios
// are computed from them.
void CheckShapes(ValueChecker& check, const std::string& where,
                 const RunRecord& record,
                 const std::vector<ConvolutionRecord>& convolutions) {
  const auto network = FindNetwork(record.network);
  if (!network.ok() || convolutions.empty()) return;
  const std::vector<NetworkConvolution> expected = (*network)->Convolutions();
  if (convolutions.size() != expected.size()) {
    check.Fail(absl::StrCat(where, ".convolutions has ", convolutions.size(),
                            " elements, and ", record.network, " has ",
                            expected.size(), " convolutions"));
    return;
  }
  for (size_t i = 0; i < convolutions.size(); ++i) {
    const NetworkConvolution& layer = expected[i];
    const ConvolutionRecord& one = convolutions[i];
    const std::string here = absl::StrCat(where, ".convolutions[", i, "].");
    const int64_t outputs = layer.output.values();
    const int64_t terms =
        layer.input.channels * layer.kernel_size * layer.kernel_size;
    for (const auto& [field, value, size] :
         {std::tuple("batch", one.batch, record.size),
          std::tuple("channels", one.channels, layer.input.channels),
          std::tuple("height", one.height, layer.input.size),
          std::tuple("width", one.width, layer.input.size),
          std::tuple("filters", one.filters, layer.output.channels),
          std::tuple("kernel_size", one.kernel_size,
                     int64_t{layer.kernel_size})}) {
      if (value == size) continue;
      check.Fail(absl::StrCat(here, field, " is ", value, ", but that of ",
                              record.network, " is ", size));
    }
    // In double, in which products of sizes do not overflow.
    const auto images = static_cast<double>(record.size);
    if (static_cast<double>(one.flops) != 2.0 * outputs * terms * images ||
        static_cast<double>(one.min_bytes) <
            4.0 * (layer.input.values() + outputs) * images) {
      check.Fail(absl::StrCat(here, "flops or min_bytes is not that of ",
                              record.network));
    }
  }
}

bool IsContributed(const RunRecord& record, const ConvolutionRecord& one) {
  const auto variant = record.variants.find(one.variant);
  return variant != record.variants.end() && IsContributed(variant->second);
}

// Samples of a variant of ours, which were taken in the network's repetitions.
// Those of a contributed kernel are the judge's, and a verdict may be that they
// are impossible.
void CheckSamples(ValueChecker& check, const std::string& here,
                  const ConvolutionRecord& one, size_t repetitions) {
  const size_t samples = one.op_time_ns.size();
  const auto as_many = [&](const char* field, size_t count, size_t expected,
                           const char* of) {
    if (count == expected) return;
    check.Fail(absl::StrCat(here, field, " has ", count, " elements, and ", of,
                            " has ", expected));
  };
  if (samples > 0 && repetitions > 0) {
    as_many("op_time_ns", samples, repetitions, "inference_ns");
  }
  const std::vector<int64_t>& kernel = one.kernel_time_ns;
  if (kernel.empty() || samples == 0) return;
  as_many("kernel_time_ns", kernel.size(), samples, "op_time_ns");
  for (size_t i = 0; i < kernel.size() && i < samples; ++i) {
    // By as much the clocks of device and host may disagree.
    const int64_t most = one.op_time_ns[i] + one.op_time_ns[i] / 1000 + 1000;
    if (kernel[i] <= most) continue;
    check.Fail(absl::StrCat(here, "kernel_time_ns[", i, "] is ", kernel[i],
                            ", but op_time_ns[", i, "] is ",
                            one.op_time_ns[i]));
  }
}

void Check(ValueChecker& check, const std::string& where,
           const RunRecord& record,
           const std::vector<ConvolutionRecord>& convolutions,
           size_t repetitions) {
  if (convolutions.size() > kMostConvolutions) {
    return check.Fail(
        absl::StrCat(where, ".convolutions has ", convolutions.size(),
                     " elements, expected at most ", kMostConvolutions));
  }
  for (size_t i = 0; i < convolutions.size(); ++i) {
    const ConvolutionRecord& convolution = convolutions[i];
    const std::string here = absl::StrCat(where, ".convolutions[", i, "].");
    check.Sizes(here, convolution, 0);
    check.Range(here + "flops", convolution.flops, 0, kMostOperations);
    check.Range(here + "min_bytes", convolution.min_bytes, 0, kMostOperations);
    check.Times(here + "op_time_ns", convolution.op_time_ns);
    check.Times(here + "kernel_time_ns", convolution.kernel_time_ns, 0);
    check.Times(here + "whole_time_ns", convolution.whole_time_ns);
    check.Range(here + "threads", convolution.threads.value_or(1), 1,
                INT32_MAX);
    if (!IsContributed(record, convolution)) {
      CheckSamples(check, here, convolution, repetitions);
    }
  }
  CheckShapes(check, where, record, convolutions);
}

void Check(ValueChecker& check, const std::string& where,
           const VerificationRecord& verification) {
  check.NotNegative(where + ".relative_error", verification.relative_error);
  check.Range(where + ".problems_tried", verification.problems_tried, 0,
              INT32_MAX);
  check.Range(where + ".problems_right", verification.problems_right, 0,
              verification.problems_tried);
  check.Range(where + ".judge_version", verification.judge_version, 0,
              INT32_MAX);
}

void Check(ValueChecker& check, const std::string& where,
           const ProfileSection& section) {
  for (size_t i = 0; i < section.entries.size(); ++i) {
    const ProfileEntry& entry = section.entries[i];
    const std::string here = absl::StrCat(where, ".entries[", i, "].");
    check.Range(here + "calls", entry.calls.value_or(0), 0, kMostImages);
    check.Range(here + "total_ns", entry.total_ns.value_or(0), 0, kDayNs);
    check.Range(here + "min_ns", entry.min_ns.value_or(0), 0, kDayNs);
    check.Range(here + "max_ns", entry.max_ns.value_or(0), 0, kDayNs);
    check.Range(here + "bytes", entry.bytes.value_or(0), 0, kMostOperations);
    check.NotNegative(here + "average_ns", entry.average_ns.value_or(0));
    check.NotNegative(here + "printed_share", entry.printed_share.value_or(0));
    check.Text(here + "name", entry.name);
  }
}

void Check(ValueChecker& check, const std::string& where,
           const Profile& profile) {
  Check(check, where + "gpu_activities", profile.gpu_activities);
  Check(check, where + "api_calls", profile.api_calls);
  for (size_t i = 0; i < profile.launches.size(); ++i) {
    const LaunchCounters& launch = profile.launches[i];
    const std::string here = absl::StrCat(where, "launches[", i, "].");
    check.Text(here + "kernel", launch.kernel);
    check.Text(here + "grid", launch.grid);
    check.Text(here + "block", launch.block);
    for (const Counter& counter : launch.counters) {
      check.Text(here + "counters.name", counter.name);
      check.Text(here + "counters.unit", counter.unit);
    }
  }
}

void CheckLadder(ValueChecker& check, const RunRecord& record) {
  if (record.ladder.size() > kMostRungs) {
    return check.Fail(absl::StrCat("record.ladder has ", record.ladder.size(),
                                   " elements, expected at most ", kMostRungs));
  }
  std::set<std::string> variants;
  for (size_t i = 0; i < record.ladder.size(); ++i) {
    const LadderRun& run = record.ladder[i];
    const std::string here = absl::StrCat("record.ladder[", i, "]");
    if (!variants.insert(run.variant).second) {
      check.Fail(absl::StrCat(here, ".variant is '", run.variant,
                              "', as an earlier one is"));
    }
    check.NotNegative(here + ".relative_error", run.relative_error);
    check.Range(here + ".correct", run.correct, 0, record.size);
    check.Counts(here + ".repetitions_correct", run.repetitions_correct,
                 record.size);
    check.Range(here + ".slice", run.slice, 0, kMostImages);
    check.Range(here + ".device_memory_peak_bytes",
                run.device_memory_peak_bytes, 0, kMostBytes);
    check.Times(here + ".inference_ns", run.inference_ns);
    Check(check, here, record, run.convolutions, run.inference_ns.size());
  }
  for (size_t i = 0; i < record.peers.size(); ++i) {
    const std::string here = absl::StrCat("record.peers[", i, "].");
    check.Range(here + "layer", record.peers[i].layer, 1, kMostConvolutions);
    check.NotNegative(here + "relative_error", record.peers[i].relative_error);
    check.Range(here + "plans", record.peers[i].plans, 0, INT32_MAX);
    check.Times(here + "kernel_time_ns", record.peers[i].kernel_time_ns);
  }
  for (size_t i = 0; i < record.overlaps.size(); ++i) {
    const std::string here = absl::StrCat("record.overlaps[", i, "].");
    check.Range(here + "layer", record.overlaps[i].layer, 0, kMostConvolutions);
    check.Range(here + "images", record.overlaps[i].images, 0, kMostImages);
    check.Range(here + "slices", record.overlaps[i].slices, 0, INT32_MAX);
    check.Times(here + "serial_ns", record.overlaps[i].serial_ns);
    check.Times(here + "overlapped_ns", record.overlaps[i].overlapped_ns);
  }
}

}  // namespace

absl::Status CheckValues(const RunRecord& record) {
  ValueChecker check;
  check.Range("record.size", record.size, 0, kMostImages);
  check.Range("record.slice", record.slice, 0, kMostImages);
  check.Range("record.threads", record.threads, 0, INT32_MAX);
  check.Machine(record.host, record.gpu);
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
  check.Range("record.usage.max_resident_bytes",
              record.usage.max_resident_bytes, 0, kMostBytes);
  check.Range("record.device_memory_peak_bytes",
              record.device_memory_peak_bytes, 0, kMostBytes);
  check.Times("record.inference_ns", record.inference_ns);
  Check(check, "record", record, record.convolutions,
        record.inference_ns.size());
  for (const auto& [name, variant] : record.variants) {
    if (!variant.verification) continue;
    Check(check, absl::StrCat("record.variants.", name, ".verification"),
          *variant.verification);
  }
  CheckLadder(check, record);
  if (record.profile) Check(check, "record.profile.", *record.profile);
  return check.Take();
}

absl::Status CheckProfile(const Profile& profile) {
  ValueChecker check;
  Check(check, "", profile);
  return check.Take();
}

}  // namespace convlab
