// The benchmark on the CPU: every variant, and oneDNN in two layouts.
#ifndef TOOLS_BENCH_CPU_BENCH_H_
#define TOOLS_BENCH_CPU_BENCH_H_

#include "absl/status/status.h"
#include "common/parallel/parallel.h"
#include "common/record/bench_record.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"

namespace convlab {

// Measures each layer in rounds. A round runs each implementation once, after
// the triad, which removes the tensors from the caches; then it runs the fused
// multiply-adds. Other users of the machine thus disturb all implementations
// alike. The ceilings are medians, as the times are. Errors of a single
// implementation are part of the report; the returned status is an error that
// affects all.
absl::Status BenchCpu(const BenchOptions& options, Workers& workers,
                      BenchRecord& record, Report& report);

}  // namespace convlab

#endif  // TOOLS_BENCH_CPU_BENCH_H_
