#include "kernels/measure/op_time.h"

#include <chrono>

#include "common/status/status.h"
#include "kernels/cuda/device.h"

namespace convlab {

absl::StatusOr<int64_t> HostNs(const std::function<absl::Status()>& run) {
  const auto start = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(run());
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start)
      .count();
}

absl::StatusOr<OpTimer> OpTimer::Create() {
  RETURN_IF_ERROR(cuda::FindDevice().status());
  ASSIGN_OR_RETURN(cuda::Event start, cuda::Event::Create());
  ASSIGN_OR_RETURN(cuda::Event stop, cuda::Event::Create());
  return OpTimer(std::move(start), std::move(stop));
}

absl::StatusOr<OpTime> OpTimer::Time(const std::function<absl::Status()>& run,
                                     CUstream_st* stream) {
  OpTime time;
  RETURN_IF_ERROR(cuda::Synchronize());
  ASSIGN_OR_RETURN(time.op_ns, HostNs([&]() -> absl::Status {
                     RETURN_IF_ERROR(start_.Record(stream));
                     RETURN_IF_ERROR(run());
                     RETURN_IF_ERROR(stop_.Record(stream));
                     return cuda::Synchronize();
                   }));
  ASSIGN_OR_RETURN(time.kernel_ns, stop_.Since(start_));
  return time;
}

}  // namespace convlab
