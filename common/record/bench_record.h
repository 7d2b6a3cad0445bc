// The record of a benchmark run: single convolutions by our variants and by
// libraries, and the machine's ceilings in the same run.
#ifndef COMMON_RECORD_BENCH_RECORD_H_
#define COMMON_RECORD_BENCH_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/hardware/rates.h"
#include "common/record/benchmark_run.h"

namespace convlab {

inline constexpr char kBenchSchema[] = "convlab.bench/1";

// The best rates of the machine in this run. Absent: not measured.
struct Ceilings {
  std::optional<double> fill_gbs;     // writing memory
  std::optional<double> copy_gbs;     // reading and writing, both counted
  std::optional<double> triad_gbs;    // two arrays read, one written; CPU
  std::optional<double> fp32_tflops;  // fused multiply-adds
  std::optional<double> tf32_tflops;  // tensor cores, sums in float32
  std::optional<double> fp16_tflops;  // likewise
};

// Converts the ceilings to the rates from which floors are computed. The
// memory's rate is the best of those measured.
Rates RatesOf(const Ceilings& ceilings);

// One convolution by one implementation.
struct BenchRow {
  std::string layer;  // "fa19-L2", or its sizes B,C,H,W,M,K
  // The layer of which this row is a neighbour.
  std::optional<std::string> neighbour_of;
  int64_t batch = 0, channels = 0, height = 0, width = 0, filters = 0,
          kernel_size = 0;
  // "convlab", "cudnn" or "onednn"; "kernel" for a contributed one.
  std::string provider;
  std::string variant;  // or the library's algorithm and layout
  std::string accuracy_class;
  double error = 0;  // relative, L2, against float64
  // The worst output's c and the largest that the contract of class fp32 allows
  // (common/accuracy/contract.h), in classes of float32.
  std::optional<double> worst_c, allowed_c;
  double median_ms = 0, iqr_ms = 0, min_ms = 0;
  int samples = 0;
  std::optional<double> sm_clock_mhz;  // seen while it ran
  double tflops = 0;                   // of the definition, at the median
  double gbs = 0;                      // least bytes, at the median
  // tflops divided by the rate of fused multiply-adds in the same round; CPU.
  std::optional<double> of_peak;
  // The floor by the ceilings; absent if none of them applies.
  std::optional<double> floor_ms;
  std::string arguments;  // of the benchmark, to repeat the measurement
};

// The worst output on the data of one family.
struct FamilyRow {
  std::string family;
  std::string layer;
  std::optional<double> c;  // absent: the output is wrong at any
  double allowed = 0;       // the largest c that the contract allows
};

// What an implementation keeps of the contract of class fp32.
struct AccuracyRow {
  std::string provider;
  std::string variant;
  std::string accuracy_class;  // a library's plan is labelled by these rows
  std::vector<FamilyRow> families;
};

// A row that is missing, and why.
struct BenchOmission {
  std::string layer;
  int64_t batch = 0;
  std::string provider;
  std::string variant;
  std::string accuracy_class;
  std::string reason;
};

struct BenchRecord : BenchmarkRun {
  // By which the inputs of samples and the outputs that are compared were
  // drawn; 0 in older records.
  int64_t check_seed = 0;
  std::string data;  // the family on which times were taken; empty: uniform
  std::string peer;  // "cuDNN 9.14.0" or "oneDNN 2.6.3"; empty: none
  Ceilings ceilings;
  std::vector<BenchRow> rows;
  std::vector<BenchOmission> omissions;
  // Of a run that takes times: the worst family of each of the library's plans
  // that may be the fastest. Of a run that compares accuracy: every family.
  std::vector<AccuracyRow> accuracy;
};

// Returns whose row it is.
enum class By { kUs, kLibrary };

// The fastest row of that layer, batch and accuracy class; null if there is
// none.
const BenchRow* FastestRow(const BenchRecord& record, By by,
                           absl::string_view layer, int64_t batch,
                           absl::string_view accuracy_class);

// The speedup of `row` over the fastest row of a library ("cudnn", "onednn")
// with the same layer, batch and accuracy class; absent if there is none.
std::optional<double> PeerRatio(const BenchRecord& record, const BenchRow& row);

// The share of its floor that a row reaches, 0 to 1; absent without a floor.
std::optional<double> FloorShare(const BenchRow& row);

// A neighbour's speed compared with its layer's: our fastest row of each, in
// the same class.
struct Neighbour {
  const BenchRow* layer;
  const BenchRow* row;
  std::string change;  // "H+1 W+1", "K-2"
  double quotient;     // of the shares of their own floors
};
// A neighbour with a smaller quotient counts as slow.
inline constexpr double kLeastNeighbour = 0.5;
// The neighbours in the order of the rows, without those that have no floor or
// whose layer is missing.
std::vector<Neighbour> Neighbours(const BenchRecord& record);

// InvalidArgument, naming the first such field, if a value is one that no
// benchmark has: a time that is not positive or longer than a day, a negative
// error or rate.
absl::Status CheckValues(const BenchRecord& record);

std::string ToJson(const BenchRecord& record);
// Like ParseRunRecord and ReadRunRecord.
absl::StatusOr<BenchRecord> ParseBenchRecord(absl::string_view json);
absl::StatusOr<BenchRecord> ReadBenchRecord(const std::string& path);

}  // namespace convlab

#endif  // COMMON_RECORD_BENCH_RECORD_H_
