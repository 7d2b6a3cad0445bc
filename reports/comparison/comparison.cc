#include "reports/comparison/comparison.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

// The op times of one run, or of one variant of a run of the ladder.
struct Timed {
  const NamedRecord* run = nullptr;
  std::string variants;
  const std::vector<ConvolutionRecord>* convolutions = nullptr;
};

std::string ProblemOf(const ConvolutionRecord& c) {
  return absl::StrCat("B=", c.batch, " C=", c.channels, " H=", c.height,
                      " W=", c.width, " M=", c.filters, " K=", c.kernel_size);
}

// The untraced runs of a side, keyed by what identifies a run; traced times are
// not compared.
absl::StatusOr<std::map<std::string, Timed>> TimedRuns(const Records& side) {
  std::map<std::string, Timed> timed;
  const auto add = [&](const NamedRecord& run,
                       const std::vector<ConvolutionRecord>& convolutions) {
    const RunRecord& record = run.record;
    const std::string variants = VariantNames(convolutions);
    const std::string key =
        absl::StrCat(record.milestone, " ", record.device, " ", record.network,
                     " ", record.split, " ", record.size, " ", variants);
    const auto [place, is_new] =
        timed.emplace(key, Timed{&run, variants, &convolutions});
    if (is_new) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        place->second.run->path, " and ", run.path, " are of the same run (",
        key, "): which of them should be compared?"));
  };
  for (const NamedRecord& run : side.runs) {
    if (run.record.profile.has_value() || run.record.fuses()) continue;
    if (run.record.ladder.empty()) {
      RETURN_IF_ERROR(add(run, run.record.convolutions));
    }
    for (const LadderRun& rung : run.record.ladder) {
      if (rung.failure.empty()) RETURN_IF_ERROR(add(run, rung.convolutions));
    }
  }
  if (timed.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(side.folder,
                     " holds traced runs only, whose times include the cost of "
                     "tracing"));
  }
  return timed;
}

// What the run could use, of which its variants may use less. Older records
// lack the instruction set, which is left out if one side lacks it.
std::string MachineOf(const RunRecord& record, bool with_target) {
  if (record.device == "gpu") return record.gpu.name;
  return absl::StrCat(
      record.host.cpu, " with ", Plural(record.threads, "thread"),
      with_target ? " and " : "", with_target ? record.cpu_target : "");
}

absl::Status CheckComparable(const Timed& a, const Timed& b) {
  const auto differ = [&](const char* what, const std::string& of_a,
                          const std::string& of_b) {
    return absl::InvalidArgumentError(absl::StrCat(
        a.run->path, " and ", b.run->path, " are of different ", what, "s, ",
        of_a, " and ", of_b, "; --force compares them all the same"));
  };
  const bool with_target =
      !a.run->record.cpu_target.empty() && !b.run->record.cpu_target.empty();
  const std::string device_a = MachineOf(a.run->record, with_target);
  const std::string device_b = MachineOf(b.run->record, with_target);
  if (device_a != device_b) return differ("device", device_a, device_b);
  for (size_t i = 0;
       i < std::max(a.convolutions->size(), b.convolutions->size()); ++i) {
    const std::string problem_a =
        i < a.convolutions->size() ? ProblemOf((*a.convolutions)[i]) : "none";
    const std::string problem_b =
        i < b.convolutions->size() ? ProblemOf((*b.convolutions)[i]) : "none";
    if (problem_a != problem_b) return differ("problem", problem_a, problem_b);
  }
  return absl::OkStatus();
}

void AddRow(const Timed& a, const Timed& b, const std::string& what,
            const Spread& spread_a, const Spread& spread_b, Table& table) {
  std::vector<Text>& row = table.rows.emplace_back();
  const RunRecord& record = a.run->record;
  row = {absl::StrCat(record.milestone, " ", record.network, " ", record.size),
         a.variants == b.variants ? Code(a.variants)
                                  : Code(a.variants) + " / " + Code(b.variants),
         what};
  const auto time = [](const Spread& spread) {
    return Milliseconds(spread.median);
  };
  const auto quartiles = [](const Spread& spread) -> std::string {
    if (spread.samples < kSamplesForSpread) return "–";
    return absl::StrCat(Milliseconds(spread.low), " – ",
                        Milliseconds(spread.high));
  };
  row.insert(row.end(),
             {time(spread_a), quartiles(spread_a), Count(spread_a.samples),
              time(spread_b), quartiles(spread_b), Count(spread_b.samples),
              absl::StrFormat("%.3f", spread_b.median / spread_a.median),
              Name(Compare(spread_a, spread_b))});
}

// A paragraph for runs that only one side has.
void AddUnmatched(const std::map<std::string, Timed>& here,
                  const std::map<std::string, Timed>& there,
                  const std::string& name, std::vector<Block>& blocks) {
  List list;
  for (const auto& [key, timed] : here) {
    if (there.count(key) == 0) list.items.emplace_back(key);
  }
  if (list.items.empty()) return;
  blocks.push_back(Paragraph{absl::StrCat("In ", name, " alone:")});
  blocks.push_back(std::move(list));
}

}  // namespace

absl::StatusOr<std::vector<Block>> CompareRecords(const Records& a,
                                                  const Records& b,
                                                  bool force) {
  ASSIGN_OR_RETURN(auto runs_a, TimedRuns(a));
  ASSIGN_OR_RETURN(auto runs_b, TimedRuns(b));
  if (runs_a.size() == 1 && runs_b.size() == 1) {
    Timed run = runs_b.begin()->second;
    runs_b = {{runs_a.begin()->first, std::move(run)}};
  }
  Table table = {{{"run", false},
                  {"variant", false},
                  {"convolution", false},
                  {"A, ms"},
                  {"quartiles"},
                  {"samples"},
                  {"B, ms"},
                  {"quartiles"},
                  {"samples"},
                  {"B ÷ A"},
                  {"the difference is", false}},
                 {}};
  for (const auto& [key, run_a] : runs_a) {
    const auto found = runs_b.find(key);
    if (found == runs_b.end()) continue;
    const Timed& run_b = found->second;
    if (!force) RETURN_IF_ERROR(CheckComparable(run_a, run_b));
    const size_t convolutions =
        std::min(run_a.convolutions->size(), run_b.convolutions->size());
    for (size_t i = 0; i < convolutions; ++i) {
      AddRow(run_a, run_b, absl::StrCat(i + 1),
             SpreadOf((*run_a.convolutions)[i].op_time_ns),
             SpreadOf((*run_b.convolutions)[i].op_time_ns), table);
    }
    if (convolutions > 1) {
      AddRow(run_a, run_b, "sum", SpreadOfSum(*run_a.convolutions),
             SpreadOfSum(*run_b.convolutions), table);
    }
  }
  if (table.rows.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(a.folder, " and ", b.folder,
                     " have no run in common: the first of each are ",
                     runs_a.begin()->first, " and ", runs_b.begin()->first));
  }
  std::vector<Block> blocks;
  blocks.push_back(
      List{{absl::StrCat("A: ", a.folder), absl::StrCat("B: ", b.folder)}});
  blocks.push_back(std::move(table));
  blocks.push_back(Paragraph{absl::StrCat(
      "Medians of the op times; below 1, B is faster. ", kSpreadRule)});
  AddUnmatched(runs_a, runs_b, "A", blocks);
  AddUnmatched(runs_b, runs_a, "B", blocks);
  return blocks;
}

}  // namespace convlab
