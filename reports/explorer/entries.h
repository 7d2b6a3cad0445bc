// The entries of the page's lists, and how they become JSON; inside.
#ifndef REPORTS_EXPLORER_ENTRIES_H_
#define REPORTS_EXPLORER_ENTRIES_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/files/files.h"
#include "common/json/json_fields.h"
#include "reports/explorer/page_data.h"

namespace convlab {

// What the page needs of a variant in a run; times in ms, rounded.
struct Row {
  std::string variant, accuracy_class, failure;
  std::string wrong;  // why its times are no result; empty if they are one
  bool is_own = false, is_library = false;
  // Of each convolution; 0 ms where it was not timed.
  std::vector<double> ms, gflop, mb;
  std::optional<double> low, high;  // quartiles of the sum
  std::optional<double> iqr;        // of a benchmark's row, summed likewise
  double error = 0;
  int64_t correct = 0;
  int64_t allowed = 0;  // by how many more or less the class may differ
};

template <typename Visitor>
void Fields(Visitor& visit, Row& row) {
  visit("variant", row.variant);
  visit("class", row.accuracy_class);
  visit("failure", row.failure);
  visit("wrong", row.wrong);
  visit("own", row.is_own);
  visit("library", row.is_library);
  visit("ms", row.ms);
  visit("gflop", row.gflop);
  visit("mb", row.mb);
  visit("low", row.low);
  visit("high", row.high);
  visit("iqr", row.iqr);
  visit("error", row.error);
  visit("correct", row.correct);
  visit("allowed", row.allowed);
}

struct Run {
  std::string path, who, milestone, network, machine, started, revision,
      count_error;
  int64_t images = 0;
  std::optional<int64_t> correct, expected;
  double seconds = 0;
  bool is_traced = false;
  std::vector<Row> rows;
};

template <typename Visitor>
void Fields(Visitor& visit, Run& run) {
  visit("path", run.path);
  visit("who", run.who);
  visit("milestone", run.milestone);
  visit("network", run.network);
  visit("machine", run.machine);
  visit("started", run.started);
  visit("revision", run.revision);
  visit("count_error", run.count_error);
  visit("images", run.images);
  visit("correct", run.correct);
  visit("expected", run.expected);
  visit("seconds", run.seconds);
  visit("traced", run.is_traced);
  visit("rows", run.rows);
}

// The path of a file below the folder, and the participant: its first folder.
template <typename Entry>
void NameEntry(const std::string& path, const std::string& folder,
               Entry& entry) {
  const std::filesystem::path below =
      std::filesystem::path(path).lexically_relative(UserPath(folder));
  entry.path = below.empty() || below == "." ? path : below.string();
  if (below.has_parent_path() && !absl::StartsWith(entry.path, "..")) {
    entry.who = below.begin()->string();
  }
}

// The same of every kind of record.
template <typename Record, typename Entry>
void DescribeEntry(const Record& record, Entry& entry) {
  entry.machine = record.device == "gpu" ? record.gpu.name : record.host.cpu;
  entry.started = record.started.substr(0, 16);
  entry.revision = record.git_revision;
}

// Five digits, which keeps the page small.
double Rounded(double value);

// JSON as the content of an element: nothing in it can end the element, and its
// texts are as OneLine writes them.
std::string ToText(json_fields::Json json);

template <typename Value>
std::string Encoded(Value& value) {
  return ToText(json_fields::Writer::Encode(value));
}

// Adds what the page needs of a benchmark in `folder`.
void AddValues(const NamedBench& named, const std::string& folder,
               PageEntry& entry);
void AddValues(const NamedNetworks& named, const std::string& folder,
               PageEntry& entry);

}  // namespace convlab

#endif  // REPORTS_EXPLORER_ENTRIES_H_
