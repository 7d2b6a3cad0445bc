// Contributed kernels in the benchmark (--kernel).
#ifndef TOOLS_BENCH_KERNEL_BENCH_H_
#define TOOLS_BENCH_KERNEL_BENCH_H_

#include "absl/status/status.h"
#include "common/parallel/parallel.h"
#include "common/record/bench_record.h"
#include "kernels/measure/hard_limits.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"

namespace convlab {

// Judges each kernel of the options on the layer and adds its row: the kernel
// time on the GPU, the op time on the CPU, both as the judge takes them. A
// kernel that is not right, or faster than the limits allow, is an omission
// with the reason. Errors are failures of the judge.
absl::Status MeasureKernels(const BenchOptions& options,
                            const NamedLayer& layer, Workers& workers,
                            const Ceilings& ceilings, const HardLimits& limits,
                            Report& report);

}  // namespace convlab

#endif  // TOOLS_BENCH_KERNEL_BENCH_H_
