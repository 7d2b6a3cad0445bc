#include "kernels/judge/convolver.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "kernels/convolution/checking/poison.h"
#include "kernels/cuda/device.h"
#include "kernels/judge/tensors.h"

namespace convlab {
namespace {

absl::Status CopyIn(Backend backend, const float* from, absl::Span<float> to) {
  const int64_t bytes = to.size() * sizeof(float);
  if (backend == Backend::kCuda) {
    return cuda::CopyToHost(to.data(), from, bytes);
  }
  std::memcpy(to.data(), from, bytes);
  return absl::OkStatus();
}

absl::Status CopyOut(Backend backend, absl::Span<const float> from, float* to) {
  const int64_t bytes = from.size() * sizeof(float);
  if (backend == Backend::kCuda) {
    return cuda::CopyToDevice(to, from.data(), bytes);
  }
  std::memcpy(to, from.data(), bytes);
  return absl::OkStatus();
}

}  // namespace

absl::Status KernelConvolver::Convolve(size_t index, const Problem& problem,
                                       const float* x, const float* k, float* y,
                                       OpTime& time) {
  ASSIGN_OR_RETURN(const SharedTensors tensors, process_.Map(problem));
  FillBits(kPoisonedWord, tensors.y, workers_);
  RETURN_IF_ERROR(CopyIn(backend_, x, tensors.x));
  RETURN_IF_ERROR(CopyIn(backend_, k, tensors.k));
  KernelCall call;
  call.problem = problem;
  call.warm_ops = rules_.warm_ops;
  call.timed_ops = rules_.timed_ops;
  const absl::StatusOr<CallResult> run = process_.Run(call);
  if (!run.ok()) {
    return Annotate(run.status(), absl::StrCat("convolution ", index + 1));
  }
  const CallResult& result = *run;
  time.op_ns += static_cast<int64_t>(Median(result.op_ns));
  if (!result.event_ns.empty()) {
    time.kernel_ns += static_cast<int64_t>(Median(result.event_ns));
  }
  if (whole_ns_.size() <= index) whole_ns_.resize(index + 1);
  whole_ns_[index] += result.whole_ns;
  device_bytes_ = std::max(device_bytes_, result.device_bytes);
  return CopyOut(backend_, tensors.y, y);
}

}  // namespace convlab
