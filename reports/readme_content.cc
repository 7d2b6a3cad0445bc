#include "reports/readme_content.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/record/run_record.h"
#include "common/status/status.h"
#include "reports/bench_tables.h"
#include "reports/deliverables/charts.h"
#include "reports/markers.h"
#include "reports/quantities.h"
#include "reports/tables.h"

namespace convlab {
namespace {

absl::StatusOr<RunRecord> ReadCompleteRecord(const std::string& path) {
  ASSIGN_OR_RETURN(RunRecord record, ReadRunRecord(path));
  RETURN_IF_ERROR(Annotate(CheckComplete(record), path));
  return record;
}

absl::StatusOr<std::vector<RunRecord>> ReadRecords(
    const std::string& folder, const std::vector<std::string>& names) {
  std::vector<RunRecord> records;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(RunRecord record, ReadCompleteRecord(absl::StrCat(
                                           folder, "/", name, ".json")));
    records.push_back(std::move(record));
  }
  return records;
}

// Where and on what the numbers below it were measured.
std::string Caption(const RunRecord& record) {
  return absl::StrCat("Measured on ", DeviceOf(record), ", revision ",
                      record.git_revision, ".\n\n");
}

// The run of the whole ladder on the GPU that the README shows.
absl::StatusOr<RunRecord> GpuLadder(const std::string& measured) {
  return ReadCompleteRecord(measured + "/h200/m4-fa19.json");
}

}  // namespace

absl::StatusOr<std::string> UpdateReadme(absl::string_view readme,
                                         const std::string& measured) {
  const std::string cpu = measured + "/cpu";
  ASSIGN_OR_RETURN(
      const std::vector<RunRecord> ladder,
      ReadRecords(cpu,
                  {"m2-fa19-1000-naive", "m2-fa19-1000-naive_parallel",
                   "m2-fa19-1000-im2col_eigen", "m2-fa19-1000-blocked",
                   "m2-fa19-1000-vectorized", "m2-fa19-1000-register_tiled",
                   "m2-fa19-1000-dense_lanes"}));
  ASSIGN_OR_RETURN(
      const std::vector<RunRecord> networks,
      ReadRecords(
          cpu, {"final-fa17-high", "final-fa17-low", "final-fa18", "final-sp19",
                "final-sp19-baseline", "final-fa19", "final-fa20"}));
  const RunRecord& shown = networks[5];
  const std::string output =
      absl::StrCat("```\n$ bazel run //milestones:", shown.milestone, " -- ",
                   shown.model, " --device ", shown.device, "\n",
                   absl::StrJoin(shown.output, "\n"), "\n```\n");
  ASSIGN_OR_RETURN(std::string document,
                   ReplacePassage(readme, "output", output));
  ASSIGN_OR_RETURN(document, ReplacePassage(document, "cpu ladder",
                                            absl::StrCat(Caption(ladder[1]),
                                                         LadderTable(ladder))));
  ASSIGN_OR_RETURN(document,
                   ReplacePassage(document, "networks",
                                  absl::StrCat(Caption(networks[0]),
                                               NetworksTable(networks))));
  ASSIGN_OR_RETURN(const RunRecord gpu_ladder, GpuLadder(measured));
  ASSIGN_OR_RETURN(document,
                   ReplacePassage(document, "gpu ladder",
                                  absl::StrCat(Caption(gpu_ladder),
                                               ComparisonTable(gpu_ladder))));
  ASSIGN_OR_RETURN(const std::vector<RunRecord> gpu_networks,
                   ReadRecords(measured + "/h200",
                               {"final-fa17-high", "final-fa18", "final-sp19",
                                "final-fa19", "final-fa20"}));
  ASSIGN_OR_RETURN(document,
                   ReplacePassage(document, "gpu networks",
                                  absl::StrCat(Caption(gpu_networks[0]),
                                               NetworksTable(gpu_networks))));
  ASSIGN_OR_RETURN(const BenchRecords bench,
                   ReadBenchRecords(measured + "/h200"));
  return ReplacePassage(document, "layers",
                        BenchPassage(bench, "reports/charts/layers.svg"));
}

absl::StatusOr<std::map<std::string, std::string>> ReadmeCharts(
    const std::string& measured) {
  ASSIGN_OR_RETURN(const RunRecord gpu_ladder, GpuLadder(measured));
  std::vector<Chart> charts = {LadderChart("ladder-fa19", gpu_ladder)};
  ASSIGN_OR_RETURN(const BenchRecords bench,
                   ReadBenchRecords(measured + "/h200"));
  if (bench.fp32) {
    charts.push_back(LayersChart(
        "layers",
        absl::StrCat("Convolutions in float32, ", bench.fp32->gpu.name),
        bench.fp32->peer, TimesOf(*bench.fp32)));
  }
  std::map<std::string, std::string> files;
  for (const Chart& one : charts) {
    files[one.name + ".dat"] = one.data;
    files[one.name + ".gp"] = one.script;
  }
  return files;
}

}  // namespace convlab
