// The benchmark on the GPU: every variant, and cuDNN's best plan of each class.
#ifndef TOOLS_BENCH_GPU_BENCH_H_
#define TOOLS_BENCH_GPU_BENCH_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/parallel/parallel.h"
#include "common/record/bench_record.h"
#include "kernels/cuda/device.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"

namespace convlab {

// Measures the ceilings, then each layer. Errors of a single implementation are
// part of the report; the returned status is an error that affects all.
absl::Status BenchGpu(const BenchOptions& options, Workers& workers,
                      BenchRecord& record, Report& report);

// Describes the device in the record, and returns its facts; Unavailable
// without a GPU.
absl::StatusOr<cuda::DeviceFacts> SetGpuFacts(BenchmarkRun& record);

// Measures nothing: runs each variant once on each layer that it takes, between
// the marks for a profiler of hardware counters (cuda::StartProfiler). A layer
// that a variant does not take is reported on standard error; if no variant
// takes any layer, the last such reason is returned.
absl::Status RunOnGpuOnce(const BenchOptions& options, Workers& workers);

}  // namespace convlab

#endif  // TOOLS_BENCH_GPU_BENCH_H_
