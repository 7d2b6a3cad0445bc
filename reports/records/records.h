// The runs that a report is made from: a folder of run records, and what
// profilers wrote about the same runs.
#ifndef REPORTS_RECORDS_RECORDS_H_
#define REPORTS_RECORDS_RECORDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/profile.h"
#include "common/record/run_record.h"

namespace convlab {

struct NamedRecord {
  std::string path;
  RunRecord record;
};

struct Records {
  std::string folder;             // as the user gave it
  std::vector<NamedRecord> runs;  // in the order of their paths
  // Hardware counters by the name of their file without ".csv", which is the
  // variant's.
  std::map<std::string, Profile> counters;
  // Chrome traces by the path of their file.
  std::map<std::string, std::string> traces;
};

// Everything below `folder`, or the one record that it names: run records and
// Chrome traces (*.json), and ncu's counters (*.csv); other files, the
// benchmark's records among them, are passed over. With `network`, its records
// alone. Counters do not say what they were measured on: those in a folder
// ncu-NETWORK are that network's, others are taken where all records are of one
// network. The error names the file that is no record, or is damaged, or says
// that there is no record, or that there are two files of a variant's counters.
absl::StatusOr<Records> ReadRecords(const std::string& folder,
                                    absl::string_view network);

// Records that stand in one report are of one network, one split, one GPU and
// one CPU. InvalidArgument names two that are not.
absl::Status CheckSameMachine(const Records& records);

// What to look for; a field without a value may have any.
struct Wanted {
  absl::string_view milestone;
  absl::string_view device;  // "cpu", "gpu" or "" for any
  std::optional<int64_t> size = std::nullopt;
  bool traced = false;
};

// The newest of those with the most images; nullptr if there is none.
const RunRecord* Find(const Records& records, const Wanted& wanted);
// All of them, the fewest images first.
std::vector<const RunRecord*> FindAll(const Records& records,
                                      const Wanted& wanted);

}  // namespace convlab

#endif  // REPORTS_RECORDS_RECORDS_H_
