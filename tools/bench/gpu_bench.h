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

// Measures nothing: runs each variant once on each layer that it takes, where a
// profiler of hardware counters looks (cuda::StartProfiler). A layer that a
// variant does not take is told on standard error; if it takes none of them,
// that is the status.
absl::Status RunOnGpuOnce(const BenchOptions& options, Workers& workers);

}  // namespace convlab

#endif  // TOOLS_BENCH_GPU_BENCH_H_
