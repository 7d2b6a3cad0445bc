#include "reports/passages.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/folder.h"
#include "common/record/run_record.h"
#include "common/status/status.h"
#include "reports/accuracy_tables.h"
#include "reports/bench_tables.h"
#include "reports/cluster_model.h"
#include "reports/deliverables/charts.h"
#include "reports/drawing/canvas.h"
#include "reports/markers.h"
#include "reports/network_tables.h"
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

// What a real run printed, and its command.
absl::StatusOr<std::string> Output(const std::string& measured) {
  ASSIGN_OR_RETURN(const RunRecord shown,
                   ReadCompleteRecord(measured + "/cpu/final-fa19.json"));
  return absl::StrCat("```\n$ bazel run //milestones:", shown.milestone, " -- ",
                      shown.model, " --device ", shown.device, "\n",
                      absl::StrJoin(shown.output, "\n"), "\n```\n");
}

// The run of all variants on the GPU that the documents show.
absl::StatusOr<RunRecord> GpuLadder(const std::string& measured) {
  return ReadCompleteRecord(measured + "/h200/m4-fa19.json");
}

absl::StatusOr<std::string> GpuLessons(const std::string& measured) {
  ASSIGN_OR_RETURN(const RunRecord ladder, GpuLadder(measured));
  return absl::StrCat(Caption(ladder), LessonsTable(ladder));
}

absl::StatusOr<std::string> GpuOthers(const std::string& measured) {
  ASSIGN_OR_RETURN(const RunRecord ladder, GpuLadder(measured));
  return absl::StrCat(Caption(ladder), OthersTable(ladder));
}

// One record for each variant, whichever there are.
absl::StatusOr<std::string> CpuLessons(const std::string& measured) {
  const std::string folder = measured + "/cpu";
  std::vector<std::string> names;
  ASSIGN_OR_RETURN(const std::vector<std::string> files, NamesIn(folder));
  for (const std::string& file : files) {
    const std::string name = std::filesystem::path(file).stem().string();
    if (absl::StartsWith(name, "m2-fa19-1000-")) names.push_back(name);
  }
  if (names.empty()) {
    return absl::NotFoundError(
        absl::StrCat(folder, ": there is no record m2-fa19-1000-*.json"));
  }
  ASSIGN_OR_RETURN(const std::vector<RunRecord> ladder,
                   ReadRecords(folder, names));
  return absl::StrCat(Caption(ladder[0]), LadderTable(ladder));
}

absl::StatusOr<std::string> Networks(const std::string& folder,
                                     const std::vector<std::string>& names) {
  ASSIGN_OR_RETURN(const std::vector<RunRecord> networks,
                   ReadRecords(folder, names));
  return absl::StrCat(Caption(networks[0]), NetworksTable(networks));
}

absl::StatusOr<std::string> CpuNetworks(const std::string& measured) {
  return Networks(
      measured + "/cpu",
      {"final-fa17-high", "final-fa17-low", "final-fa18", "final-sp19",
       "final-sp19-baseline", "final-fa19", "final-fa20"});
}

absl::StatusOr<std::string> GpuNetworks(const std::string& measured) {
  return Networks(measured + "/h200",
                  {"final-fa17-high", "final-fa18", "final-sp19", "final-fa19",
                   "final-fa20"});
}

absl::StatusOr<std::string> Headline(const std::string& measured) {
  ASSIGN_OR_RETURN(const BenchRecords bench,
                   ReadBenchRecords(measured + "/h200"));
  return bench.fp32 ? HeadlineTable(*bench.fp32) : "Not measured.\n";
}

absl::StatusOr<std::string> Layers(const std::string& measured) {
  ASSIGN_OR_RETURN(const BenchRecords bench,
                   ReadBenchRecords(measured + "/h200"));
  return BenchPassage(bench, "../reports/charts/layers.svg");
}

// What `make` writes of the record of accuracy.
absl::StatusOr<std::string> Accuracy(const std::string& measured,
                                     std::string (*make)(const BenchRecord&)) {
  const std::string path = measured + "/h200/bench-accuracy.json";
  const absl::StatusOr<BenchRecord> record = ReadBenchRecord(path);
  if (absl::IsNotFound(record.status())) return std::string("Not measured.\n");
  if (!record.ok()) return record.status();
  RETURN_IF_ERROR(Annotate(CheckAccuracy(*record), path));
  return make(*record);
}

absl::StatusOr<std::string> AccuracyOfAll(const std::string& measured) {
  return Accuracy(measured, AccuracyTable);
}

absl::StatusOr<std::string> AccuracyOfKinds(const std::string& measured) {
  return Accuracy(measured, AccuracyDigest);
}

// What `make` writes of a record of whole networks.
absl::StatusOr<std::string> WholeNetworks(
    const std::string& measured, std::string (*make)(const NetworkRecord&),
    const char* file = "network.json") {
  ASSIGN_OR_RETURN(const auto record,
                   ReadNetworks(absl::StrCat(measured, "/h200/", file)));
  return record ? make(*record) : std::string("Not measured.\n");
}

absl::StatusOr<std::string> WholeNetworksDigest(const std::string& measured) {
  return WholeNetworks(measured, [](const NetworkRecord& record) {
    return absl::StrCat(
        NetworksDigest(record),
        "\n![Images per second over the number of images](reports/charts/"
        "networks-rate.svg)\n\n![The time of a call over the number of images]("
        "reports/charts/networks-latency.svg)\n");
  });
}

absl::StatusOr<std::string> WholeNetworksFigures(const std::string& measured) {
  return WholeNetworks(measured, NetworksFigures);
}

absl::StatusOr<std::string> Cluster(const std::string& measured) {
  ASSIGN_OR_RETURN(const auto runs, ReadClusterRuns(measured + "/h200"));
  return runs.empty() ? std::string("Not measured.\n")
                      : absl::StrCat(ClusterTables(runs),
                                     "\n![Images per second over the number of "
                                     "GPUs](../reports/charts/cluster.svg)\n");
}

absl::StatusOr<std::string> SeveralGpus(const std::string& measured) {
  return WholeNetworks(measured, SeveralGpusTable, "gpus.json");
}

struct Passage {
  absl::string_view name;
  absl::StatusOr<std::string> (*make)(const std::string& measured);
};

constexpr Passage kPassages[] = {
    {"output", Output},
    {"headline", Headline},
    {"gpu lessons", GpuLessons},
    {"gpu others", GpuOthers},
    {"gpu networks", GpuNetworks},
    {"whole networks", WholeNetworksFigures},
    {"whole networks digest", WholeNetworksDigest},
    {"layers", Layers},
    {"cluster", Cluster},
    {"several gpus", SeveralGpus},
    {"accuracy", AccuracyOfAll},
    {"accuracy digest", AccuracyOfKinds},
    {"cpu lessons", CpuLessons},
    {"networks", CpuNetworks},
};

}  // namespace

const std::vector<std::string>& GeneratedDocuments() {
  static const auto* const documents = new std::vector<std::string>{
      "README.md", "docs/results.md", "docs/cluster.md"};
  return *documents;
}

absl::StatusOr<std::string> UpdatePassages(absl::string_view document,
                                           const std::string& measured) {
  std::string updated(document);
  for (const std::string& name : PassageNames(document)) {
    const auto* const passage =
        std::find_if(std::begin(kPassages), std::end(kPassages),
                     [&](const Passage& one) { return one.name == name; });
    if (passage == std::end(kPassages)) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no passage '", name, "': expected one of ",
                       absl::StrJoin(kPassages, ", ",
                                     [](std::string* out, const Passage& one) {
                                       absl::StrAppend(out, one.name);
                                     })));
    }
    ASSIGN_OR_RETURN(const std::string content, passage->make(measured));
    ASSIGN_OR_RETURN(updated,
                     ReplacePassage(updated, name, Printable(content)));
  }
  return updated;
}

absl::StatusOr<std::map<std::string, std::string>> PassageCharts(
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
  ASSIGN_OR_RETURN(const auto networks,
                   ReadNetworks(measured + "/h200/network.json"));
  if (networks) {
    for (Chart& chart : NetworkCharts(*networks)) {
      charts.push_back(std::move(chart));
    }
  }
  ASSIGN_OR_RETURN(const auto runs, ReadClusterRuns(measured + "/h200"));
  if (!runs.empty()) charts.push_back(ClusterChart(runs));
  std::map<std::string, std::string> files;
  for (const Chart& one : charts) {
    files[one.name + ".svg"] = drawing::StandaloneFile(one.wide);
  }
  return files;
}

}  // namespace convlab
