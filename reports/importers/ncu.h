// ncu's output with --csv: hardware counters of single kernel launches, from
// the details page (a metric per row) or the raw page (a launch per row).
#ifndef REPORTS_IMPORTERS_NCU_H_
#define REPORTS_IMPORTERS_NCU_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/profile.h"

namespace convlab {

// Whether a line of `content` is the header of such a page.
bool HasNcuHeader(absl::string_view content);

// Reads the launches with their counters, without metrics whose value is a
// text. If each launch has a duration, the profile also has an entry of GPU
// activities for each kernel. InvalidArgument says with line and column what is
// damaged or ambiguous.
absl::StatusOr<Profile> ParseNcu(absl::string_view content);

// The facts of a launch for reports; absent if not measured. Percentages are 0
// to 100.
struct LaunchFacts {
  std::optional<double> duration_ns;
  std::optional<double> sm_clock_hz;  // on average while it ran
  std::optional<double> dram_bytes;
  std::optional<double> dram_percent;    // of the peak throughput
  std::optional<double> sm_percent;      // likewise
  std::optional<double> tensor_percent;  // of the tensor pipe's active cycles
  std::optional<double> l1_hit_percent;
  std::optional<double> l2_hit_percent;
  std::optional<double> occupancy_percent;  // achieved
  std::optional<double> registers_per_thread;
  // Static and dynamic, without what the driver adds.
  std::optional<double> shared_bytes_per_block;
  std::optional<double> bank_conflicts;  // of shared memory
  // Why an instruction waited, and for how many cycles on average; the longest
  // first.
  std::vector<std::pair<std::string, double>> stalls;
};

// Knows the names of both pages, of versions from 2020 to 2026.
LaunchFacts FactsOf(const LaunchCounters& launch);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_NCU_H_
