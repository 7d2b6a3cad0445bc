#include "reports/deliverables/counter_tables.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "reports/deliverables/charts.h"
#include "reports/importers/launch_facts.h"
#include "reports/importers/listing.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

std::string Percent(const std::optional<double>& percent) {
  return percent ? absl::StrFormat("%.1f", *percent) : "–";
}

std::string Bytes(const std::optional<double>& bytes) {
  return bytes ? FormatBytes(*bytes) : "–";
}

struct MeasuredLaunch {
  std::string kernel;
  LaunchFacts facts;
};

// The launches of a variant, the longest first.
std::vector<MeasuredLaunch> LaunchesOf(const Source& source,
                                       const std::string& variant) {
  std::vector<MeasuredLaunch> launches;
  const auto found = source.records->counters.find(variant);
  if (found == source.records->counters.end()) return launches;
  for (const LaunchCounters& launch : found->second.launches) {
    launches.push_back({launch.kernel, FactsOf(launch)});
  }
  std::stable_sort(launches.begin(), launches.end(),
                   [](const MeasuredLaunch& a, const MeasuredLaunch& b) {
                     return a.facts.duration_ns.value_or(0) >
                            b.facts.duration_ns.value_or(0);
                   });
  return launches;
}

// A unit that is busier than this bounds a kernel.
constexpr double kBusyPercent = 60;
constexpr char kBoundRule[] =
    "A kernel is bound by the unit that is busiest, if that is at 60 % of its "
    "peak or more: device memory, or a unit of the multiprocessors "
    "(arithmetic, "
    "instruction issue, shared memory and caches). Below that it is bound by "
    "waiting.";

// Explains the columns of the counters' tables.
constexpr char kColumnsRule[] =
    "DRAM, SM and tensor are the shares of their peaks at which device memory, "
    "the busiest unit of the multiprocessors and the tensor cores worked; ncu "
    "reports a little for the tensor cores in kernels without them too. "
    "Occupancy is the share of the warps that a multiprocessor can hold. The "
    "longest wait is the reason for which warps waited longest on average, in "
    "cycles per instruction.";
constexpr std::pair<absl::string_view, absl::string_view> kWaits[] = {
    {"barrier", "other warps of the block have not arrived"},
    {"lg throttle", "the queue of loads and stores is full"},
    {"long scoreboard", "data from device memory or L2 has not arrived"},
    {"math pipe throttle", "the arithmetic unit is busy"},
    {"mio throttle", "the queue of shared memory's instructions is full"},
    {"not selected",
     "the warp was ready and another one was chosen: no lack of work"},
    {"short scoreboard", "data from shared memory has not arrived"},
    {"wait", "the previous instruction has a fixed latency"},
};

// "the multiprocessors (79.4 % of their peak)".
std::string Bound(const LaunchFacts& facts) {
  if (!facts.dram_percent || !facts.sm_percent) return "";
  const double memory = *facts.dram_percent, sm = *facts.sm_percent;
  if (std::max(memory, sm) >= kBusyPercent) {
    return memory > sm
               ? absl::StrFormat("device memory (%.0f %% of its peak)", memory)
               : absl::StrFormat("the multiprocessors (%.0f %% of their peak)",
                                 sm);
  }
  std::string wait = absl::StrFormat(
      "waiting: device memory is at %.0f %% and the multiprocessors at %.0f %% "
      "of their peaks",
      memory, sm);
  return wait;
}

// Rows for each launch that takes a noticeable share of the time.
void AddRows(const std::string& variant,
             const std::vector<MeasuredLaunch>& launches, Table& table) {
  double total = 0;
  for (const MeasuredLaunch& launch : launches) {
    total += launch.facts.duration_ns.value_or(0);
  }
  for (const MeasuredLaunch& launch : launches) {
    const LaunchFacts& facts = launch.facts;
    constexpr double kWorthARow = 0.02;
    if (facts.duration_ns.value_or(0) < kWorthARow * total) continue;
    table.rows.push_back(
        {Code(variant), Code(KernelName(launch.kernel, 36)),
         facts.duration_ns ? FormatNanoseconds(*facts.duration_ns) : "–",
         Bytes(facts.dram_bytes), Percent(facts.dram_percent),
         Percent(facts.sm_percent), Percent(facts.tensor_percent),
         Percent(facts.occupancy_percent),
         facts.registers_per_thread
             ? absl::StrFormat("%.0f", *facts.registers_per_thread)
             : "–",
         Bytes(facts.shared_bytes_per_block),
         facts.stalls.empty()
             ? "–"
             : absl::StrFormat("%s, %.1f", facts.stalls[0].first,
                               facts.stalls[0].second)});
  }
}

// A panel for each quantity that both launches have.
std::vector<drawing::PanelPlot::Panel> PanelsOf(const LaunchFacts& before,
                                                const LaunchFacts& after) {
  std::vector<drawing::PanelPlot::Panel> panels;
  const auto add = [&](const char* name, const std::optional<double>& then,
                       const std::optional<double>& now, auto format) {
    if (then && now) {
      panels.push_back({name, *then, *now, format(then), format(now)});
    }
  };
  const auto percent = [](const std::optional<double>& value) {
    return Percent(value) + " %";
  };
  add("time of that launch", before.duration_ns, after.duration_ns,
      [](const std::optional<double>& ns) { return FormatNanoseconds(*ns); });
  add("multiprocessors busy", before.sm_percent, after.sm_percent, percent);
  add("device memory busy", before.dram_percent, after.dram_percent, percent);
  add("occupancy", before.occupancy_percent, after.occupancy_percent, percent);
  add("DRAM traffic", before.dram_bytes, after.dram_bytes, Bytes);
  add("registers a thread", before.registers_per_thread,
      after.registers_per_thread, [](const std::optional<double>& count) {
        return absl::StrFormat("%.0f", *count);
      });
  add("L2 hits", before.l2_hit_percent, after.l2_hit_percent, percent);
  add("tensor cores busy", before.tensor_percent, after.tensor_percent,
      percent);
  return panels;
}

// The time for which the busiest unit of the multiprocessors worked in a whole
// operation.
struct Work {
  double busy_ns = 0, whole_ns = 0;
};

// Absent if the counters do not cover the whole operation: they have one launch
// of each grid, and a variant may launch a grid many times.
std::optional<Work> WorkOf(const std::vector<MeasuredLaunch>& launches,
                           const LadderRun& run) {
  Work work;
  for (const MeasuredLaunch& launch : launches) {
    if (!launch.facts.duration_ns || !launch.facts.sm_percent) return {};
    work.whole_ns += *launch.facts.duration_ns;
    work.busy_ns += *launch.facts.duration_ns * *launch.facts.sm_percent / 100;
  }
  constexpr double kApart = 0.15;
  const double op_time = OpTimeSum(run.convolutions);
  if (std::abs(work.whole_ns - op_time) > kApart * op_time) return {};
  return work;
}

}  // namespace

bool AddCounters(const Source& source, const std::string& variant,
                 const LadderRun* before, bool is_contributed,
                 Deliverable& deliverable) {
  const std::vector<MeasuredLaunch> launches = LaunchesOf(source, variant);
  if (launches.empty()) {
    // Those of a participant's kernel are the judge's.
    if (is_contributed) return false;
    AddMissing(deliverable,
               absl::StrCat("there are no hardware counters of ", variant),
               absl::StrCat("tools/measure_ncu.sh BUNDLE ",
                            ShellWord(absl::StrCat(source.records->folder,
                                                   "/ncu-", source.network)),
                            " ", source.network, " ", variant));
    return false;
  }
  const std::vector<MeasuredLaunch> others =
      before == nullptr ? std::vector<MeasuredLaunch>()
                        : LaunchesOf(source, before->variant);
  if (others.empty()) return true;
  drawing::PanelPlot plot;
  plot.before = before->variant;
  plot.after = variant;
  plot.title = "The longest kernel, before and after";
  plot.panels = PanelsOf(others[0].facts, launches[0].facts);
  if (plot.panels.empty()) return true;
  plot.description =
      absl::StrCat("Hardware counters of the longest kernel of ", plot.before,
                   " and of ", variant, ", a pair of bars for each");
  deliverable.blocks.push_back(Figure{
      MakeChart("counters-" + variant, plot),
      "Pairs of bars: hardware counters before and after",
      Text("One launch of ") + Code(KernelName(others[0].kernel, 44)) +
          " and of " + Code(KernelName(launches[0].kernel, 44)) +
          ", read by ncu. " +
          AppendixNote(source, "All kernels: ", "the counters", "counters")});
  return true;
}

Text BoundText(const Source& source, const std::string& variant) {
  const std::vector<MeasuredLaunch> launches = LaunchesOf(source, variant);
  if (launches.empty()) return {};
  const std::string bound = Bound(launches[0].facts);
  if (bound.empty()) return {};
  return Text("Its longest kernel, ") +
         Code(KernelName(launches[0].kernel, 44)) + ", is bound by " + bound +
         ".";
}

Deliverable CountersOf(const Source& source,
                       const std::vector<std::string>& variants) {
  Deliverable part = {"The hardware counters", "counters"};
  Table table = {{{"variant", false},
                  {"kernel", false},
                  {"time"},
                  {"DRAM traffic"},
                  {"DRAM, %"},
                  {"SM, %"},
                  {"tensor, %"},
                  {"occupancy, %"},
                  {"registers"},
                  {"shared"},
                  {"longest wait, cycles", false}},
                 {}};
  std::set<std::string> waits;
  for (const std::string& variant : variants) {
    const std::vector<MeasuredLaunch> launches = LaunchesOf(source, variant);
    AddRows(variant, launches, table);
    for (const MeasuredLaunch& launch : launches) {
      if (launch.facts.stalls.empty()) continue;
      waits.insert(launch.facts.stalls[0].first);
    }
  }
  if (table.rows.empty()) return part;
  part.blocks.push_back(Paragraph{
      "One launch of each grid; those shorter than 2 % are left out."});
  part.blocks.emplace_back(std::move(table));
  part.blocks.emplace_back(
      Generated(absl::StrCat(kBoundRule, " ", kColumnsRule)));
  List list;
  list.is_generated = true;
  for (const auto& [wait, meaning] : kWaits) {
    if (waits.count(std::string(wait)) == 0) continue;
    list.items.push_back(Strong(std::string(wait)) + ": " +
                         std::string(meaning));
  }
  if (!list.items.empty()) part.blocks.emplace_back(std::move(list));
  return part;
}

std::string WhyNotFaster(const Source& source, const LadderRun& run,
                         const LadderRun& before) {
  const std::vector<MeasuredLaunch> launches = LaunchesOf(source, run.variant);
  const std::vector<MeasuredLaunch> others = LaunchesOf(source, before.variant);
  if (launches.empty() || others.empty()) return "";
  const std::optional<Work> now = WorkOf(launches, run);
  const std::optional<Work> then = WorkOf(others, before);
  if (!now || !then) {
    return "The counters do not show why: they have one launch of each grid, "
           "which is not the whole operation of both.";
  }
  const std::string busy = absl::StrFormat(
      "the busiest unit of the multiprocessors is at work for %s, with %s for "
      "%s",
      FormatNanoseconds(now->busy_ns), before.variant,
      FormatNanoseconds(then->busy_ns));
  const double waiting = now->whole_ns - now->busy_ns;
  const double waited = then->whole_ns - then->busy_ns;
  if (now->busy_ns - then->busy_ns > waiting - waited) {
    return absl::StrCat("The reason is more work than before: ", busy, ".");
  }
  std::string why =
      absl::StrCat("The reason is longer waiting: ", busy,
                   "; the rest of the time, ", FormatNanoseconds(waiting),
                   " and before ", FormatNanoseconds(waited), ", is waiting");
  if (!launches[0].facts.stalls.empty()) {
    absl::StrAppend(&why, ", in its longest kernel mostly for \"",
                    launches[0].facts.stalls[0].first, "\"");
  }
  return why + ".";
}

}  // namespace convlab
