// The sources of a report: a folder of run records, and profilers' files about
// the same runs.
#ifndef REPORTS_RECORDS_RECORDS_H_
#define REPORTS_RECORDS_RECORDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/bench_record.h"
#include "common/record/network_record.h"
#include "common/record/profile.h"
#include "common/record/run_record.h"
#include "common/record/seal.h"

namespace convlab {

struct NamedRecord {
  std::string path;
  RunRecord record;
  SealState seal = SealState::kUnsealed;
};

// The records of benchmarks: of single convolutions, and of whole networks.
struct NamedBench {
  std::string path;
  BenchRecord record;
};
struct NamedNetworks {
  std::string path;
  NetworkRecord record;
};

// A file that should be a record and is not.
struct BrokenFile {
  std::string path;
  std::string reason;
};

struct Records {
  std::string folder;             // as the user gave it
  std::vector<NamedRecord> runs;  // in the order of their paths
  // Runs in which a participant's kernel failed before it had op times. Empty
  // unless they were asked for.
  std::vector<NamedRecord> failed;
  // Hardware counters by the name of their file without ".csv", which is the
  // variant's.
  std::map<std::string, Profile> counters;
  // Chrome traces by the path of their file.
  std::map<std::string, std::string> traces;
  // Empty unless they were asked for.
  std::vector<NamedBench> benches;
  std::vector<NamedNetworks> networks;
  std::vector<BrokenFile> broken;
};

struct ReadOptions {
  std::string network;   // only its records are read; empty: all
  std::string seal_key;  // with which seals are checked; may be empty
  // Files that are damaged or no run records are listed in Records::broken
  // instead of ending the reading.
  bool keep_broken = false;
  // The benchmarks' records are read too.
  bool benchmarks = false;
  // Runs of kernels that failed are in Records::failed instead of ending the
  // reading.
  bool keep_failed = false;
};

// Reads everything below `folder`, or the one record that it names: run records
// and Chrome traces (*.json), and ncu's counters (*.csv); other files, and the
// benchmarks' records unless they are asked for, are skipped. With `network`,
// only its runs are read. Counters do not name their network: those in a folder
// ncu-NETWORK are that network's, others are used if all records are of one
// network. The error names the file that is not a record or is damaged, or says
// that there is no record, or that a variant has two files of counters.
absl::StatusOr<Records> ReadRecords(const std::string& folder,
                                    absl::string_view network);
absl::StatusOr<Records> ReadRecords(const std::string& folder,
                                    const ReadOptions& options);

// The folders directly in `folder` that hold run records at any depth, sorted,
// if `folder` itself holds none; otherwise nothing. Two or more are most likely
// the folders of several people.
std::vector<std::string> FoldersWithRecords(const std::string& folder);

// Records that stand in one report are of one network, one split, one GPU and
// one CPU. InvalidArgument names two that are not.
absl::Status CheckSameMachine(const Records& records);

// A filter; a field without a value matches any.
struct Wanted {
  absl::string_view milestone;
  absl::string_view device;  // "cpu", "gpu" or "" for any
  std::optional<int64_t> size = std::nullopt;
  bool traced = false;
  // A run on a participant's kernel, or on our variants.
  std::optional<bool> contributed = std::nullopt;
  // A run that compares variants, or one of a variant for each convolution.
  bool ladder = false;
};

// The participant's kernel that the judge does not call right in the run, by
// its name in RunRecord::variants; nullptr if there is none.
const std::pair<const std::string, VariantRecord>* RefusedKernel(
    const RunRecord& record);

// Whether the run's convolutions are a participant's kernel.
bool IsContributed(const RunRecord& record);

// The newest of the matching records with the most images, of those on a
// participant's kernel if there are any; nullptr if there is none.
const RunRecord* Find(const Records& records, const Wanted& wanted);
// All matching records, those on our variants first, then by the number of
// images, the fewest first.
std::vector<const RunRecord*> FindAll(const Records& records,
                                      const Wanted& wanted);

}  // namespace convlab

#endif  // REPORTS_RECORDS_RECORDS_H_
