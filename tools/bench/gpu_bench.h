// The benchmark on the GPU: every variant, and cuDNN's best plan of each class.
#ifndef TOOLS_BENCH_GPU_BENCH_H_
#define TOOLS_BENCH_GPU_BENCH_H_

#include "absl/status/status.h"
#include "common/parallel/parallel.h"
#include "common/record/bench_record.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"

namespace convlab {

// Measures the ceilings, then each layer. What goes wrong with one
// implementation is told in the report; the status is of what would go wrong
// with all.
absl::Status BenchGpu(const BenchOptions& options, Workers& workers,
                      BenchRecord& record, Report& report);

}  // namespace convlab

#endif  // TOOLS_BENCH_GPU_BENCH_H_
