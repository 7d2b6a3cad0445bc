// The definitions of an operation's two times. All code that reports one of
// them takes it from here or from GpuTimer.
//
//   op time      by the host's clock, from an idle device to an idle device:
//                everything that the operation does, launches and copies
//                included. On the CPU: from the call to its return.
//   kernel time  by events of the device round the same work: without what the
//                host adds. GpuTimer (gpu_timer.h) samples it from a cold
//                cache.
#ifndef KERNELS_MEASURE_OP_TIME_H_
#define KERNELS_MEASURE_OP_TIME_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"

namespace convlab {

// Returns the nanoseconds between the call of `run` and its return on the
// host's clock, which is the op time of an operation that is complete when it
// returns. Errors are those of the run.
absl::StatusOr<int64_t> HostNs(const std::function<absl::Status()>& run);

struct OpTime {
  int64_t op_ns = 0;
  int64_t kernel_ns = 0;  // 0 on the CPU
  int threads = 0;        // of the CPU that shared the work; 0: not known
};

// Times operations on the current GPU, which need not be complete when `run`
// returns.
class OpTimer {
 public:
  // Unavailable without a GPU.
  static absl::StatusOr<OpTimer> Create();

  // Returns both times of one run, which works in `stream` (null: the default
  // stream). There is no warm-up: if this is a kernel's first run, the op time
  // includes loading its code.
  absl::StatusOr<OpTime> Time(const std::function<absl::Status()>& run,
                              CUstream_st* stream = nullptr);

 private:
  OpTimer(cuda::Event start, cuda::Event stop)
      : start_(std::move(start)), stop_(std::move(stop)) {}

  cuda::Event start_, stop_;
};

}  // namespace convlab

#endif  // KERNELS_MEASURE_OP_TIME_H_
