#include "reports/records/records.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/files/files.h"
#include "common/files/folder.h"
#include "common/record/classify_record.h"
#include "common/status/status.h"
#include "reports/importers/import.h"
#include "reports/importers/ncu.h"
#include "reports/tables.h"

namespace convlab {
namespace {

namespace fs = std::filesystem;

// The paths of all files below `folder`, sorted; `folder` itself if it is a
// file.
absl::StatusOr<std::vector<fs::path>> FilesBelow(const std::string& folder) {
  std::error_code error;
  if (fs::is_regular_file(folder, error)) return std::vector<fs::path>{folder};
  if (!fs::is_directory(folder, error)) {
    if (error) return FileError("read", folder, error.value());
    return absl::NotFoundError(absl::StrCat(
        "cannot read ", folder, ": it is not a folder of run records"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, PathsBelow(folder));
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    if (fs::is_regular_file(path, error)) files.emplace_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Our traces begin like this; run records do not.
bool IsChromeTrace(absl::string_view content) {
  return absl::StrContains(content.substr(0, 4096), "\"traceEvents\"");
}

// The files below a folder.
struct Files {
  Records records;
  std::set<std::string> networks;  // of all records, whether wanted or not
  struct Counters {
    fs::path path;
    Profile profile;
  };
  std::vector<Counters> counters;
};

// Reads the record of a benchmark. Returns whether it is one.
absl::StatusOr<bool> ReadBenchmark(const fs::path& path,
                                   const std::string& content,
                                   const ReadOptions& options,
                                   Records& records) {
  const absl::string_view head = absl::string_view(content).substr(0, 4096);
  const bool is_bench = absl::StrContains(head, kBenchSchema);
  const bool is_network = absl::StrContains(head, kNetworkSchema);
  if (is_bench && options.benchmarks) {
    absl::StatusOr<BenchRecord> record = ParseBenchRecord(content);
    if (!record.ok()) return Annotate(record.status(), path.string());
    records.benches.push_back({path.string(), *std::move(record)});
  } else if (is_network && options.benchmarks) {
    absl::StatusOr<NetworkRecord> record = ParseNetworkRecord(content);
    if (!record.ok()) return Annotate(record.status(), path.string());
    records.networks.push_back({path.string(), *std::move(record)});
  }
  // Documents alone show runs of classify (reports/cluster_model.h).
  return is_bench || is_network || absl::StrContains(head, kClassifySchema);
}

absl::Status ReadJson(const fs::path& path, const ReadOptions& options,
                      Files& files) {
  ASSIGN_OR_RETURN(std::string content, ReadFile(path.string()));
  if (IsChromeTrace(content)) {
    files.records.traces[path.string()] = std::move(content);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const bool is_benchmark,
                   ReadBenchmark(path, content, options, files.records));
  if (is_benchmark) return absl::OkStatus();
  absl::StatusOr<RunRecord> record = ParseRunRecord(content);
  if (!record.ok()) return Annotate(record.status(), path.string());
  files.networks.insert(record->network);
  if (!options.network.empty() && record->network != options.network) {
    return absl::OkStatus();
  }
  if (options.keep_failed && record->convolutions.empty() &&
      record->ladder.empty() && RefusedKernel(*record) != nullptr) {
    files.records.failed.push_back({path.string(), *std::move(record)});
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Annotate(record->profile.has_value() ? CheckDescribed(*record)
                                                       : CheckComplete(*record),
                           path.string()));
  if (record->size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), ": record.size is ", record->size,
                     ", expected at least 1"));
  }
  ASSIGN_OR_RETURN(const SealState seal, CheckSeal(content, options.seal_key));
  files.records.runs.push_back({path.string(), *std::move(record), seal});
  return absl::OkStatus();
}

absl::Status ReadCsv(const fs::path& path, Files& files) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path.string()));
  if (!HasNcuHeader(content)) return absl::OkStatus();
  absl::StatusOr<Profile> profile = ParseNcu(content);
  if (!profile.ok()) return Annotate(profile.status(), path.string());
  files.counters.push_back({path, *std::move(profile)});
  return absl::OkStatus();
}

// Reads the counters of the records' network.
absl::Status TakeCounters(Files& files) {
  const std::string& network = files.records.runs[0].record.network;
  std::map<std::string, fs::path> taken;
  for (Files::Counters& counters : files.counters) {
    const std::string folder = counters.path.parent_path().filename().string();
    absl::string_view owner = folder;
    if (absl::ConsumePrefix(&owner, "ncu-") ? owner != network
                                            : files.networks.size() > 1) {
      continue;
    }
    const std::string variant = counters.path.stem().string();
    const auto [first, is_new] = taken.emplace(variant, counters.path);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(
          first->second.string(), " and ", counters.path.string(),
          " are counters of the same variant: which of them should be used?"));
    }
    files.records.counters[variant] = std::move(counters.profile);
  }
  return absl::OkStatus();
}

bool Matches(const RunRecord& record, const Wanted& wanted) {
  return record.milestone == wanted.milestone &&
         (wanted.device.empty() || record.device == wanted.device) &&
         (!wanted.size.has_value() || record.size == *wanted.size) &&
         (!wanted.contributed.has_value() ||
          IsContributed(record) == *wanted.contributed) &&
         record.profile.has_value() == wanted.traced && !record.fuses() &&
         !(wanted.ladder ? record.ladder.empty() : record.convolutions.empty());
}

}  // namespace

absl::StatusOr<Records> ReadRecords(const std::string& folder,
                                    absl::string_view network) {
  ReadOptions options;
  options.network = std::string(network);
  return ReadRecords(folder, options);
}

absl::StatusOr<Records> ReadRecords(const std::string& folder,
                                    const ReadOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<fs::path> paths,
                   FilesBelow(UserPath(folder)));
  Files files;
  files.records.folder = folder;
  for (const fs::path& path : paths) {
    absl::Status read;
    // A file that is named explicitly must be a record, whatever its name is.
    if (path.extension() == ".json" || path == fs::path(UserPath(folder))) {
      read = ReadJson(path, options, files);
    } else if (path.extension() == ".csv") {
      read = ReadCsv(path, files);
    }
    if (read.ok()) continue;
    // A file that the system did not let us read is not a broken one.
    if (!options.keep_broken || ExitStatus(read) == 1) return read;
    absl::string_view reason = read.message();
    absl::ConsumePrefix(&reason, path.string() + ": ");
    files.records.broken.push_back({path.string(), std::string(reason)});
  }
  if (!files.records.runs.empty()) {
    RETURN_IF_ERROR(TakeCounters(files));
  } else if (!files.records.failed.empty()) {
    const NamedRecord& failed = files.records.failed[0];
    return Annotate(CheckDescribed(failed.record), failed.path);
  } else if (files.records.broken.empty() && files.records.benches.empty() &&
             files.records.networks.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder, " holds no run record",
        options.network.empty() ? "" : absl::StrCat(" of ", options.network),
        ": a milestone writes one with --record FILE"));
  }
  return std::move(files.records);
}

std::vector<std::string> FoldersWithRecords(const std::string& folder) {
  const absl::StatusOr<std::vector<fs::path>> paths =
      FilesBelow(UserPath(folder));
  std::set<std::string> folders;
  if (!paths.ok()) return {};
  for (const fs::path& path : *paths) {
    const fs::path below = path.lexically_relative(UserPath(folder));
    if (path.extension() != ".json") continue;
    const absl::StatusOr<std::string> content = ReadFile(path.string());
    if (!content.ok() ||
        !absl::StrContains(content->substr(0, 4096), kRunRecordSchema)) {
      continue;
    }
    if (below.has_parent_path()) {
      folders.insert(below.begin()->string());
    } else {
      return {};
    }
  }
  return {folders.begin(), folders.end()};
}

absl::Status CheckSameMachine(const Records& records) {
  // A property in which all records must agree, and the first record that has
  // it.
  struct Fact {
    const char* name;
    std::string value;
    const NamedRecord* first = nullptr;
  };
  Fact network = {"network", ""}, split = {"data set", ""}, gpu = {"GPU", ""},
       cpu = {"CPU", ""};
  for (const NamedRecord& run : records.runs) {
    const RunRecord& record = run.record;
    const bool on_gpu = record.device == "gpu";
    const std::pair<Fact*, std::string> facts[] = {
        {&network, record.network},
        {&split, record.split},
        {on_gpu ? &gpu : &cpu, on_gpu
                                   ? record.gpu.name
                                   : absl::StrCat(record.host.cpu, ", ",
                                                  record.host.cores, " cores")},
    };
    for (const auto& [fact, value] : facts) {
      if (fact->first == nullptr) {
        fact->first = &run;
        fact->value = value;
      } else if (fact->value != value) {
        return absl::InvalidArgumentError(absl::StrCat(
            "a report is of one ", fact->name, ", but ", fact->first->path,
            " is of ", fact->value, " and ", run.path, " of ", value,
            fact == &network ? "; choose one with --network" : ""));
      }
    }
  }
  return absl::OkStatus();
}

const std::pair<const std::string, VariantRecord>* RefusedKernel(
    const RunRecord& record) {
  for (const auto& named : record.variants) {
    const VariantRecord& variant = named.second;
    if (IsContributed(variant) && !IsRight(*variant.verification)) {
      return &named;
    }
  }
  return nullptr;
}

bool IsContributed(const RunRecord& record) {
  return absl::c_any_of(
      record.convolutions, [&](const ConvolutionRecord& convolution) {
        const auto variant = record.variants.find(convolution.variant);
        return variant != record.variants.end() &&
               IsContributed(variant->second);
      });
}

std::vector<const RunRecord*> FindAll(const Records& records,
                                      const Wanted& wanted) {
  std::vector<const RunRecord*> found;
  for (const NamedRecord& run : records.runs) {
    if (Matches(run.record, wanted)) found.push_back(&run.record);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const RunRecord* a, const RunRecord* b) {
                     return std::tuple(IsContributed(*a), a->size, a->started) <
                            std::tuple(IsContributed(*b), b->size, b->started);
                   });
  return found;
}

const RunRecord* Find(const Records& records, const Wanted& wanted) {
  const std::vector<const RunRecord*> found = FindAll(records, wanted);
  return found.empty() ? nullptr : found.back();
}

}  // namespace convlab
