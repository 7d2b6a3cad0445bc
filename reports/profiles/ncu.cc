#include "reports/profiles/ncu.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/status/status.h"
#include "reports/profiles/numbers.h"
#include "reports/profiles/summary.h"
#include "reports/profiles/text.h"

namespace convlab {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

using Record = std::vector<Cell>;

// Which of a page's columns stand where.
struct Header {
  Record columns;
  size_t id, process, kernel, block, grid, metric, unit, value;

  explicit Header(Record record)
      : columns(std::move(record)),
        id(Find("ID")),
        process(Find("Process ID")),
        kernel(Find("Kernel Name")),
        block(Find("Block Size")),
        grid(Find("Grid Size")),
        metric(Find("Metric Name")),
        unit(Find("Metric Unit")),
        value(Find("Metric Value")) {}

  size_t Find(absl::string_view title) const {
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].text == title) return i;
    }
    return kNone;
  }

  bool IsDetails() const { return metric != kNone; }

  // Metrics have names like "dram__bytes.sum". Others say which launch it is.
  bool IsMetric(size_t column) const {
    return absl::StrContains(columns[column].text, "__");
  }

  bool IsHeader() const {
    if (kernel == kNone) return false;
    if (IsDetails()) return true;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (IsMetric(i)) return true;
    }
    return false;
  }
};

// The header that begins at `offset`, if one does; moves behind it.
std::optional<Header> HeaderAt(absl::string_view content, size_t& offset) {
  if (!absl::StrContains(LineAt(content, offset).text, "Kernel Name")) {
    return std::nullopt;
  }
  size_t end = offset;
  auto record = ReadCsvRecord(content, end);
  if (!record.ok()) return std::nullopt;
  Header header(*std::move(record));
  if (!header.IsHeader()) return std::nullopt;
  offset = end;
  return header;
}

std::string TextAt(const Record& record, size_t column) {
  return column < record.size()
             ? std::string(absl::StripAsciiWhitespace(record[column].text))
             : std::string();
}

// A value before its number is read.
struct Value {
  size_t launch = 0;
  std::string name, unit;
  Cell number;
};

class NcuReader {
 public:
  explicit NcuReader(absl::string_view content)
      : content_(content), numbers_(content) {}

  absl::StatusOr<Profile> Read() {
    profile_.tool = "ncu";
    for (size_t at = 0; at < content_.size();) {
      const auto header = HeaderAt(content_, at);
      if (!header) {
        at = NextLine(content_, at);
        continue;
      }
      RETURN_IF_ERROR(header->IsDetails() ? ReadDetails(*header, at)
                                          : ReadRaw(*header, at));
    }
    if (profile_.launches.empty()) {
      return absl::InvalidArgumentError(
          "ncu's output holds no launch of a kernel: the file is cut short");
    }
    for (const Value& value : values_) {
      RETURN_IF_ERROR(numbers_.Observe(value.number));
    }
    for (Value& value : values_) {
      ASSIGN_OR_RETURN(const double number, numbers_.Read(value.number));
      profile_.launches[value.launch].counters.push_back(
          {std::move(value.name), std::move(value.unit), number});
    }
    AddActivities();
    return std::move(profile_);
  }

 private:
  absl::Status Require(const Header& header, size_t column,
                       absl::string_view title) const {
    if (column != kNone) return absl::OkStatus();
    return ErrorAt(content_, header.columns[0].offset,
                   absl::StrCat("this header lacks the column '", title, "'"));
  }

  // The next row of a page: nothing at its end, which is a blank line or one
  // that is no CSV of ncu's, such as "==PROF==" or the program's own output.
  absl::StatusOr<std::optional<Record>> NextRow(size_t& at) const {
    if (at >= content_.size() || content_[at] != '"') {
      return std::optional<Record>();
    }
    size_t next = at;
    if (HeaderAt(content_, next)) return std::optional<Record>();
    ASSIGN_OR_RETURN(Record record, ReadCsvRecord(content_, at));
    return std::optional<Record>(std::move(record));
  }

  size_t AddLaunch(const Header& header, const Record& record) {
    profile_.launches.push_back({TextAt(record, header.kernel),
                                 TextAt(record, header.grid),
                                 TextAt(record, header.block),
                                 {}});
    return profile_.launches.size() - 1;
  }

  // Notes a value to be read once the file's locale is known.
  absl::Status AddValue(size_t launch, const std::string& name,
                        const std::string& unit, const Cell& cell) {
    if (IsAbsent(cell.text)) return absl::OkStatus();
    const auto [number, rest] = SplitUnit(cell);
    // Values of all instances may follow in parentheses.
    const bool is_number =
        !number.text.empty() && (rest.empty() || absl::StartsWith(rest, "("));
    if (is_number) {
      values_.push_back({launch, name, unit, number});
      return absl::OkStatus();
    }
    // Without a unit it may be a text, like "CachePreferNone".
    const bool is_text =
        unit.empty() &&
        std::any_of(cell.text.begin(), cell.text.end(), absl::ascii_isalpha);
    if (is_text) return absl::OkStatus();
    return ErrorAt(content_, cell.offset,
                   absl::StrCat("expected the number of ", Quoted(name),
                                ", found ", Quoted(cell.text)));
  }

  absl::Status ReadDetails(const Header& header, size_t& at) {
    RETURN_IF_ERROR(Require(header, header.id, "ID"));
    RETURN_IF_ERROR(Require(header, header.value, "Metric Value"));
    // Some versions leave out what follows the last column that a row fills.
    const size_t least =
        1 + std::max({header.id, header.kernel, header.metric, header.value});
    std::map<std::string, size_t> launches;  // by ID, process and kernel
    for (;;) {
      const size_t begin = at;
      ASSIGN_OR_RETURN(const auto row, NextRow(at));
      if (!row) return absl::OkStatus();
      if (row->size() < least || row->size() > header.columns.size()) {
        return ErrorAt(
            content_, begin,
            absl::StrCat("this row has ", row->size(),
                         " columns, its header has ", header.columns.size()));
      }
      const auto [launch, is_new] =
          launches.emplace(absl::StrCat((*row)[header.id].text, "\n",
                                        TextAt(*row, header.process), "\n",
                                        (*row)[header.kernel].text),
                           0);
      if (is_new) launch->second = AddLaunch(header, *row);
      const std::string name = TextAt(*row, header.metric);
      if (name.empty()) continue;  // a rule's advice
      RETURN_IF_ERROR(AddValue(launch->second, name, TextAt(*row, header.unit),
                               (*row)[header.value]));
    }
  }

  absl::Status ReadRaw(const Header& header, size_t& at) {
    RETURN_IF_ERROR(Require(header, header.id, "ID"));
    std::optional<Record> units;
    for (;;) {
      const size_t begin = at;
      ASSIGN_OR_RETURN(const auto row, NextRow(at));
      if (!row) return absl::OkStatus();
      if (row->size() != header.columns.size()) {
        return ErrorAt(
            content_, begin,
            absl::StrCat("this row has ", row->size(),
                         " columns, its header has ", header.columns.size()));
      }
      if (!units) {
        if (!(*row)[header.id].text.empty()) {
          return ErrorAt(content_, begin,
                         "expected a row of units behind the header");
        }
        units = row;
        continue;
      }
      const size_t launch = AddLaunch(header, *row);
      for (size_t i = 0; i < row->size(); ++i) {
        if (!header.IsMetric(i)) continue;
        RETURN_IF_ERROR(AddValue(launch, header.columns[i].text,
                                 TextAt(*units, i), (*row)[i]));
      }
    }
  }

  void AddActivities() {
    ProfileSection& gpu = profile_.gpu_activities;
    profile_.api_calls.missing = "not in the file";
    for (const LaunchCounters& launch : profile_.launches) {
      const auto duration = FactsOf(launch).duration_ns;
      constexpr double kLargest = int64_t{1} << 53;
      if (!duration || *duration < 0 || *duration > kLargest) {
        gpu = {};
        gpu.missing = "not in the file";
        return;
      }
      ProfileEntry entry;
      entry.name = launch.kernel;
      entry.calls = 1;
      entry.total_ns = entry.min_ns = entry.max_ns = std::llround(*duration);
      entry.average_ns = *duration;
      gpu.entries.push_back(std::move(entry));
    }
    MergeEntries(gpu.entries);
    gpu.missing =
        "only the launches that ncu measured, at the clocks of that run; "
        "copies "
        "and memsets: not in the file";
  }

  const absl::string_view content_;
  NumberReader numbers_;
  Profile profile_;
  std::vector<Value> values_;
};

// What one of a unit is in the unit that facts have; nothing for another kind
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

// Of what is counted: with a unit like "register/thread" or without one. Counts
// of millions may be scaled.
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

  // The sum of two, both of which must be there.
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

bool HasNcuHeader(absl::string_view content) {
  for (size_t at = 0; at < content.size(); at = NextLine(content, at)) {
    size_t next = at;
    if (HeaderAt(content, next)) return true;
  }
  return false;
}

absl::StatusOr<Profile> ParseNcu(absl::string_view content) {
  return NcuReader(content).Read();
}

LaunchFacts FactsOf(const LaunchCounters& launch) {
  const Facts facts(launch);
  LaunchFacts found;
  found.duration_ns =
      facts.First({"gpu__time_duration.sum", "gpu__time_duration.avg",
                   "gpu__time_duration.max", "Duration"},
                  NanosecondsPer);
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
