// The facts that the counters of a kernel launch hold, by whatever names ncu's
// versions give them.
#ifndef REPORTS_IMPORTERS_LAUNCH_FACTS_H_
#define REPORTS_IMPORTERS_LAUNCH_FACTS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/record/profile.h"

namespace convlab {

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

#endif  // REPORTS_IMPORTERS_LAUNCH_FACTS_H_
