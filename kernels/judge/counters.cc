#include "kernels/judge/counters.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/files/files.h"
#include "common/files/folder.h"
#include "common/program/program.h"
#include "common/status/status.h"
#include "kernels/measure/inputs.h"

namespace convlab {
namespace {

constexpr char kTime[] = "gpu__time_duration.sum";
constexpr char kMemory[] = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
constexpr char kL2[] = "lts__throughput.avg.pct_of_peak_sustained_elapsed";
constexpr char kL1[] = "l1tex__throughput.avg.pct_of_peak_sustained_active";
constexpr char kIssue[] = "sm__inst_issued.avg.pct_of_peak_sustained_active";
constexpr char kTensor[] =
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active";
constexpr char kWarps[] = "sm__warps_active.avg.pct_of_peak_sustained_active";
constexpr char kConflicts[] =
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";
constexpr char kWavefronts[] = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum";
constexpr char kSectors[] =
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct";
constexpr const char* kAll[] = {kTime,       kMemory, kL2,    kL1,
                                kIssue,      kTensor, kWarps, kConflicts,
                                kWavefronts, kSectors};

// The path of ncu: the one of the PATH, the newest installed one, or the
// toolkit's; empty if there is none.
std::string FindNcu() {
  std::vector<std::string> places = PlacesOnPath("ncu");
  std::vector<std::string> versions;
  constexpr char kInstalled[] = "/opt/nvidia/nsight-compute";
  if (const auto names = NamesIn(kInstalled); names.ok()) {
    for (const std::string& name : *names) {
      versions.push_back(absl::StrCat(kInstalled, "/", name, "/ncu"));
    }
  }
  std::sort(versions.rbegin(), versions.rend());
  places.insert(places.end(), versions.begin(), versions.end());
  places.emplace_back("/usr/local/cuda/bin/ncu");
  return FindProgram(places);
}

// The fields of a line of CSV; quotes may surround a field, and two quotes in
// it stand for one.
std::vector<std::string> Fields(absl::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

std::string Percent(const KernelCounters& counters, const char* name) {
  const auto value = counters.values.find(name);
  return value == counters.values.end()
             ? "?"
             : absl::StrFormat("%.0f %%", value->second);
}

}  // namespace

absl::StatusOr<KernelCounters> ParseCounters(absl::string_view csv) {
  std::vector<std::string> header;
  KernelCounters longest;
  double longest_ns = -1;
  for (absl::string_view line : absl::StrSplit(csv, '\n')) {
    if (!absl::StartsWith(line, "\"")) continue;
    std::vector<std::string> fields = Fields(line);
    if (header.empty()) {
      header = std::move(fields);
      continue;
    }
    KernelCounters row;
    for (size_t i = 0; i < std::min(fields.size(), header.size()); ++i) {
      double value;  // written with commas between thousands
      if (header[i] == "Kernel Name") {
        row.kernel = fields[i].substr(0, fields[i].find('('));
      } else if (std::find(std::begin(kAll), std::end(kAll), header[i]) !=
                     std::end(kAll) &&
                 absl::SimpleAtod(absl::StrReplaceAll(fields[i], {{",", ""}}),
                                  &value)) {
        row.values[header[i]] = value;
      }
    }
    // The second row holds the units.
    const auto time = row.values.find(kTime);
    if (time == row.values.end() || time->second <= longest_ns) continue;
    longest_ns = time->second;
    longest = std::move(row);
  }
  if (longest_ns < 0) {
    return absl::DataLossError("ncu's output holds no kernel");
  }
  return longest;
}

absl::StatusOr<KernelCounters> ReadCounters(const std::string& library,
                                            const Problem& problem,
                                            const ProcessOptions& options,
                                            const std::string& folder) {
  const std::string ncu = FindNcu();
  if (ncu.empty())
    return absl::UnavailableError("there is no ncu on this machine");
  const std::string output = folder + "/ncu.csv";
  ProcessOptions wrapped = options;
  wrapped.gpu = true;
  wrapped.sandbox = false;
  // Every kernel is run again for each group of counters.
  wrapped.seconds = std::max(options.seconds, 60.0);
  wrapped.wrapper = {ncu,
                     "--clock-control",
                     "none",
                     "--print-units",
                     "base",
                     "--page",
                     "raw",
                     "--csv",
                     "--log-file",
                     output,
                     "--launch-count",
                     "20",
                     "--metrics",
                     absl::StrJoin(kAll, ",")};
  {
    ASSIGN_OR_RETURN(const auto process,
                     KernelProcess::Start(library, wrapped));
    ASSIGN_OR_RETURN(const SharedTensors tensors, process->Map(problem));
    const std::vector<float> x = RandomFloats(tensors.x.size(), 1);
    const std::vector<float> k = RandomFloats(tensors.k.size(), 2);
    std::copy(x.begin(), x.end(), tensors.x.begin());
    std::copy(k.begin(), k.end(), tensors.k.begin());
    std::fill(tensors.y.begin(), tensors.y.end(),
              std::numeric_limits<float>::quiet_NaN());
    KernelCall call;
    call.problem = problem;
    RETURN_IF_ERROR(process->Run(call).status());
    process->Finish();
  }
  ASSIGN_OR_RETURN(const std::string csv, ReadFile(output));
  if (absl::StrContains(csv, "ERR_NVGPUCTRPERM")) {
    return absl::UnavailableError(
        "this machine's administrator does not permit hardware counters "
        "(ERR_NVGPUCTRPERM)");
  }
  absl::StatusOr<KernelCounters> counters = ParseCounters(csv);
  if (counters.ok()) return counters;
  // ncu says in its first message what went wrong.
  const std::vector<std::string> lines = absl::StrSplit(csv, '\n');
  for (const std::string& line : lines) {
    if (!absl::StartsWith(line, "==ERROR==") &&
        !absl::StartsWith(line, "==WARNING==")) {
      continue;
    }
    return Annotate(counters.status(), line);
  }
  return counters;
}

std::vector<std::string> DescribeCounters(const KernelCounters& counters) {
  const auto value = [&](const char* name) {
    const auto found = counters.values.find(name);
    return found == counters.values.end() ? 0 : found->second;
  };
  const std::string what = absl::StrCat(
      counters.kernel, ": memory ", Percent(counters, kMemory),
      " of its peak, ", "L2 ", Percent(counters, kL2),
      ", L1 and shared memory ", Percent(counters, kL1), ", issue slots ",
      Percent(counters, kIssue), ", tensor cores ", Percent(counters, kTensor),
      ", warps resident ", Percent(counters, kWarps));
  const double conflicts =
      value(kWavefronts) > 0 ? value(kConflicts) / value(kWavefronts) : 0;
  // Above these shares a unit is called busy, below them idle: the limits of
  // ncu's own guide.
  constexpr double kBusy = 60, kFew = 30;
  std::string so;
  if (value(kMemory) >= kBusy) {
    so = "memory bounds it: read each input once and write each output once, "
         "fuse passes, and store less in between";
  } else if (value(kTensor) >= kBusy) {
    so = "the tensor cores bound it: fewer products for each output, or idle "
         "rows and columns of their tiles";
  } else if (conflicts > 0.2) {
    so = absl::StrFormat(
        "%.0f %% of its accesses to shared memory are bank conflicts: change "
        "the layout, by a padded row for instance",
        100 * conflicts);
  } else if (value(kL1) >= kBusy || value(kL2) >= kBusy) {
    so = value(kSectors) > 0 && value(kSectors) < 50
             ? absl::StrFormat(
                   "its loads use %.0f %% of the bytes that they fetch: let "
                   "neighbouring threads read neighbouring elements",
                   value(kSectors))
             : std::string(
                   "loads through the caches bound it: keep inputs and "
                   "filters in registers, so that a load serves several "
                   "products");
  } else if (value(kIssue) >= kBusy) {
    so = "issue slots bound it: fewer instructions for each product, by "
         "unrolled loops, wider loads and more outputs for each thread";
  } else if (value(kWarps) < kFew) {
    so = "it waits with few warps resident: fewer registers or less shared "
         "memory for each block, or more independent work in each thread";
  } else {
    so = "no unit is busy: it waits, for memory or at barriers; start loads "
         "earlier and give each thread several independent sums";
  }
  return {what, so};
}

}  // namespace convlab
