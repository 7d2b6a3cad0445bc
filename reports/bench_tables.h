// The README's tables of the benchmark's records: our fastest kernel of each
// layer, cuDNN's best and the floor. Pure functions, as in tables.h.
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

// InvalidArgument, naming the row, unless there are rows, each of a layer.
absl::Status CheckComplete(const BenchRecord& record);

// "Measured on NVIDIA H200, revision 1234, beside cuDNN 9.19.0."
std::string Caption(const BenchRecord& record);

// The records of tools/measure_gpu.sh; absent if not measured.
struct BenchRecords {
  std::optional<BenchRecord> fp32;        // the layers, in class fp32
  std::optional<BenchRecord> fp16;        // in class fp16
  std::optional<BenchRecord> small;       // at few images
  std::optional<BenchRecord> neighbours;  // and their neighbours
};

// Reads bench-fp32.json, bench-fp16.json, bench-small.json and
// bench-neighbours.json in `folder`, of which any may be missing. The error
// names a file that is not a complete record.
absl::StatusOr<BenchRecords> ReadBenchRecords(const std::string& folder);

// A row per layer: our fastest variant with its time, spread, error and clock,
// the library's best, the speedup, the floor and the share of it. The geometric
// mean of the speedups follows.
std::string LayersTable(const BenchRecord& record);

// README's digest of it: our fastest variant, its time, the library's, the
// speedup and the share of the floor, after a caption that names the device.
// The geometric mean of the speedups follows.
std::string HeadlineTable(const BenchRecord& record);

// The layers with many channels in class fp16: ours and the library's best.
std::string HalfPrecisionTable(const BenchRecord& record);

// A row per layer, a column per batch: our time : the library's.
std::string BatchesTable(const BenchRecord& record);

// How many neighbours reach half of their layer's share of the floor, the worst
// of each layer, and all that do not.
std::string NeighboursText(const BenchRecord& record);

// The README's passage with all of these. It names missing records and the
// command that measures them; `chart` is the picture of the first table.
std::string BenchPassage(const BenchRecords& records, const std::string& chart);

// The times of LayersTable.
std::vector<ChartedLayer> TimesOf(const BenchRecord& record);

}  // namespace convlab

#endif  // REPORTS_BENCH_TABLES_H_
