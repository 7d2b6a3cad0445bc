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
// the triad, which leaves nothing of the tensors in the caches, and the fused
// multiply-adds: other users of the machine then disturb all alike. The
// ceilings are medians, as the times are. What goes wrong with one
// implementation is told in the report; the status is of what would go wrong
// with all.
absl::Status BenchCpu(const BenchOptions& options, Workers& workers,
                      BenchRecord& record, Report& report);

}  // namespace convlab

#endif  // TOOLS_BENCH_CPU_BENCH_H_
