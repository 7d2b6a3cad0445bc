// What README shows of the benchmark's records: our fastest kernel of each
// layer beside cuDNN's best and the floor. Pure functions, as tables.h.
#ifndef REPORTS_BENCH_TABLES_H_
#define REPORTS_BENCH_TABLES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/record/bench_record.h"
#include "reports/deliverables/charts.h"

namespace convlab {

// InvalidArgument, naming the row, unless there are rows, each of a layer and
// with times above 0.
absl::Status CheckComplete(const BenchRecord& record);

// Those of tools/measure_gpu.sh; absent: not measured.
struct BenchRecords {
  std::optional<BenchRecord> fp32;        // the layers, in class fp32
  std::optional<BenchRecord> fp16;        // in class fp16
  std::optional<BenchRecord> small;       // at few images
  std::optional<BenchRecord> neighbours;  // and problems like them
};

// From bench-fp32.json, bench-fp16.json, bench-small.json and
// bench-neighbours.json in `folder`, as far as they are there. The error names
// the file that is no complete record.
absl::StatusOr<BenchRecords> ReadBenchRecords(const std::string& folder);

// A row per layer: our fastest variant with its time, spread, error and clock,
// the library's best, how many times as fast ours is, the floor and the share
// of it. Below it the geometric mean of the ratios.
std::string LayersTable(const BenchRecord& record);

// README's digest of it: our fastest variant, its time, the library's, how many
// times as fast ours is and the share of the floor, with the device before and
// the geometric mean behind.
std::string HeadlineTable(const BenchRecord& record);

// The layers with many channels in class fp16: ours beside the library's best.
std::string HalfPrecisionTable(const BenchRecord& record);

// A row per layer, a column per batch: our time : the library's.
std::string BatchesTable(const BenchRecord& record);

// How many neighbours reach half of their layer's share of the floor, the worst
// of each layer, and all that do not.
std::string NeighboursText(const BenchRecord& record);

// README's passage of all of them. What is missing is said, with the command
// that measures it; `chart` names the picture of the first table.
std::string BenchPassage(const BenchRecords& records, const std::string& chart);

// The times of LayersTable.
std::vector<LayerTimes> TimesOf(const BenchRecord& record);

}  // namespace convlab

#endif  // REPORTS_BENCH_TABLES_H_
