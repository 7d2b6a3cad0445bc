// Whole networks on several GPUs at the same time, each with images in its own
// memory.
#ifndef TOOLS_BENCH_GPUS_BENCH_H_
#define TOOLS_BENCH_GPUS_BENCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/bench/network_calls.h"

namespace convlab {

struct GpusOptions {
  int gpus = 1;        // the first of them
  int64_t count = 0;   // images of a call, of the case's
  int samples = 20;    // at most
  double seconds = 5;  // and no more after that
  int threads = 1;     // of the host for each GPU, which prepare
};

struct GpusTimes {
  // Of a call on each GPU at the same time, by the host's clock; each sample is
  // the mean of a round of many.
  std::vector<int64_t> samples_ns;
  std::vector<CallAnswers> answers;  // of each GPU
};

// Measures the case's call on the device. All GPUs begin a round together,
// and its end is that of the last.
absl::StatusOr<GpusTimes> MeasureGpus(const NetworkCase& one,
                                      const GpusOptions& options);

}  // namespace convlab

#endif  // TOOLS_BENCH_GPUS_BENCH_H_
