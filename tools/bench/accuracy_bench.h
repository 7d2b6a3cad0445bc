// The comparison of accuracy: what each implementation in float32 keeps of the
// contract of class fp32, on every family of data.
#ifndef TOOLS_BENCH_ACCURACY_BENCH_H_
#define TOOLS_BENCH_ACCURACY_BENCH_H_

#include "absl/status/status.h"
#include "common/parallel/parallel.h"
#include "common/record/bench_record.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"

namespace convlab {

// Takes no times. Runs the variants of the options that compute in float32, and
// cuDNN's plans, on each layer with each family's data, and adds a row for each
// to the record, with the worst output of all layers for each family. An engine
// of cuDNN is one row, whatever its knobs and its layout. A variant of class
// fp32 that breaks the contract is a failure of the report.
absl::Status BenchAccuracy(const BenchOptions& options, Workers& workers,
                           BenchRecord& record, Report& report);

// The rows as a table: the class, the worst family, and how many families break
// the contract.
std::string AccuracyTable(const std::vector<AccuracyRow>& rows);

// Merges another output into the row's family, if it is worse.
void AddWorst(const std::string& family, const std::string& layer,
              const WorstOutput& worst, AccuracyRow& row);

}  // namespace convlab

#endif  // TOOLS_BENCH_ACCURACY_BENCH_H_
