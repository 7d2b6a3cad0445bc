#include "reports/importers/launch_facts.h"

#include <algorithm>
#include <initializer_list>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "reports/importers/numbers.h"

namespace convlab {
namespace {

// The factor from a unit to the unit of LaunchFacts; nothing for another kind
// of unit.
std::optional<double> PercentPer(absl::string_view unit) {
  return unit == "%" ? std::optional<double>(1) : std::nullopt;
}

// ncu's prefixes are decimal: 33,792 byte are 33.79 Kbyte.
std::optional<double> BytesPer(absl::string_view unit) {
  unit = unit.substr(0, unit.find("/block"));
  constexpr std::pair<absl::string_view, double> kUnits[] = {{"byte", 1},
                                                             {"Kbyte", 1e3},
                                                             {"Mbyte", 1e6},
                                                             {"Gbyte", 1e9},
                                                             {"Tbyte", 1e12}};
  for (const auto& [name, bytes] : kUnits) {
    if (unit == name) return bytes;
  }
  return std::nullopt;
}

// "Hz" and "cycle/second" with their prefixes, in the spellings of ncu's
// versions.
std::optional<double> HertzPer(absl::string_view unit) {
  constexpr std::pair<absl::string_view, double> kUnits[] = {
      {"hz", 1},
      {"khz", 1e3},
      {"mhz", 1e6},
      {"ghz", 1e9},
      {"cycle/second", 1},
      {"cycle/msecond", 1e3},
      {"cycle/usecond", 1e6},
      {"cycle/nsecond", 1e9},
      {"cycle/s", 1},
      {"cycle/ms", 1e3},
      {"cycle/us", 1e6},
      {"cycle/ns", 1e9}};
  for (const auto& [name, hertz] : kUnits) {
    if (absl::EqualsIgnoreCase(unit, name)) return hertz;
  }
  return std::nullopt;
}

// The factor of counts, with a unit like "register/thread" or without one.
// Counts of millions may be scaled.
std::optional<double> CountPer(absl::string_view unit) {
  (void)unit;
  return 1;
}

class Facts {
 public:
  explicit Facts(const LaunchCounters& launch) : launch_(launch) {}

  using UnitFunction = std::optional<double> (*)(absl::string_view);

  // The value of the first of `names` that the launch has in such a unit.
  std::optional<double> First(std::initializer_list<absl::string_view> names,
                              UnitFunction unit_function) const {
    for (const absl::string_view name : names) {
      for (const Counter& counter : launch_.counters) {
        if (counter.name != name) continue;
        const auto unit = unit_function(counter.unit);
        if (unit) return counter.value * *unit;
      }
    }
    return std::nullopt;
  }

  // The sum of two values, both of which must be present.
  std::optional<double> Sum(std::initializer_list<absl::string_view> a,
                            std::initializer_list<absl::string_view> b,
                            UnitFunction unit_function) const {
    const auto first = First(a, unit_function);
    const auto second = First(b, unit_function);
    return first && second ? std::optional<double>(*first + *second)
                           : std::nullopt;
  }

 private:
  const LaunchCounters& launch_;
};

// "long scoreboard" of a metric that counts the cycles for which warps waited
// for it, per instruction issued.
std::optional<std::string> StallReason(absl::string_view metric) {
  if (absl::ConsumePrefix(&metric, "Stall ")) {
    return absl::AsciiStrToLower(metric);
  }
  for (const absl::string_view prefix :
       {"smsp__average_warps_issue_stalled_",
        "smsp__average_warp_latency_issue_stalled_"}) {
    if (!absl::ConsumePrefix(&metric, prefix)) continue;
    if (!absl::ConsumeSuffix(&metric, "_per_issue_active.ratio") &&
        !absl::ConsumeSuffix(&metric, ".ratio")) {
      return std::nullopt;
    }
    if (absl::StrContains(metric, "not_issued")) return std::nullopt;
    return absl::StrReplaceAll(metric, {{"_", " "}});
  }
  return std::nullopt;
}

}  // namespace

LaunchFacts FactsOf(const LaunchCounters& launch) {
  const Facts facts(launch);
  LaunchFacts found;
  found.duration_ns =
      facts.First({"gpu__time_duration.sum", "gpu__time_duration.avg",
                   "gpu__time_duration.max", "Duration"},
                  NanosecondsPer);
  found.sm_clock_hz =
      facts.First({"sm__cycles_elapsed.avg.per_second",
                   "smsp__cycles_elapsed.avg.per_second",
                   "gpc__cycles_elapsed.avg.per_second", "SM Frequency"},
                  HertzPer);
  found.dram_bytes = facts.First({"dram__bytes.sum"}, BytesPer);
  if (!found.dram_bytes) {
    found.dram_bytes = facts.Sum({"dram__bytes_read.sum"},
                                 {"dram__bytes_write.sum"}, BytesPer);
  }
  found.dram_percent = facts.First(
      {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
       "dram__throughput.avg.pct_of_peak_sustained_elapsed", "DRAM Throughput"},
      PercentPer);
  found.sm_percent =
      facts.First({"sm__throughput.avg.pct_of_peak_sustained_elapsed",
                   "Compute (SM) Throughput", "SM [%]", "SOL SM"},
                  PercentPer);
  found.tensor_percent = facts.First(
      {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
       "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
       "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
       "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_"
       "active"},
      PercentPer);
  found.l1_hit_percent = facts.First(
      {"l1tex__t_sector_hit_rate.pct", "L1/TEX Hit Rate"}, PercentPer);
  found.l2_hit_percent =
      facts.First({"lts__t_sector_hit_rate.pct", "L2 Hit Rate"}, PercentPer);
  found.occupancy_percent =
      facts.First({"sm__warps_active.avg.pct_of_peak_sustained_active",
                   "Achieved Occupancy"},
                  PercentPer);
  found.registers_per_thread = facts.First(
      {"launch__registers_per_thread", "Registers Per Thread"}, CountPer);
  found.shared_bytes_per_block = facts.Sum(
      {"launch__shared_mem_per_block_static", "Static Shared Memory Per Block"},
      {"launch__shared_mem_per_block_dynamic",
       "Dynamic Shared Memory Per Block"},
      BytesPer);
  found.bank_conflicts = facts.First(
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"}, CountPer);
  if (!found.bank_conflicts) {
    found.bank_conflicts = facts.Sum(
        {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"},
        {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"}, CountPer);
  }
  std::set<std::string> seen;
  for (const Counter& counter : launch.counters) {
    const auto reason = StallReason(counter.name);
    if (reason && seen.insert(*reason).second) {
      found.stalls.emplace_back(*reason, counter.value);
    }
  }
  std::stable_sort(
      found.stalls.begin(), found.stalls.end(),
      [](const auto& a, const auto& b) { return a.second > b.second; });
  return found;
}

}  // namespace convlab
