#include "kernels/measure/gpu_loads.h"

#include "common/status/status.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/error.h"
#include "kernels/measure/load_kernels.h"
#include "kernels/measure/word_kernels.h"

namespace convlab::cuda {
namespace {

static_assert(kSinkBytes == kSinkFloats * sizeof(float));

// Runs launch(words, count, result) and reads the result.
template <typename Launch>
absl::StatusOr<uint64_t> Total(const void* data, int64_t bytes, Launch launch) {
  unsigned long long total = 0;
  ASSIGN_OR_RETURN(const DeviceBuffer result,
                   DeviceBuffer::Allocate(sizeof(total)));
  RETURN_IF_ERROR(FillBytes(result.data(), 0, sizeof(total)));
  RETURN_IF_ERROR(
      ToStatus(launch(static_cast<const uint32_t*>(data), bytes / 4,
                      static_cast<unsigned long long*>(result.data()))));
  RETURN_IF_ERROR(CopyToHost(&total, result.data(), sizeof(total)));
  return total;
}

}  // namespace

absl::Status StartWait(int microseconds) {
  return ToStatus(LaunchWait(microseconds));
}

absl::Status StartFill(void* out, int64_t bytes) {
  return ToStatus(LaunchFill(out, bytes));
}

absl::Status StartCopy(const void* in, void* out, int64_t bytes) {
  return ToStatus(LaunchCopy(in, out, bytes));
}

absl::StatusOr<double> StartArithmetic(Arithmetic kind, int rounds,
                                       void* sink) {
  float* const out = static_cast<float*>(sink);
  double flops = 0;
  Error error;
  switch (kind) {
    case Arithmetic::kFp32:
      error = LaunchFma(rounds, out, &flops);
      break;
    case Arithmetic::kMmaTf32:
      error = LaunchMma(/*tf32=*/true, rounds, out, &flops);
      break;
    case Arithmetic::kMmaFp16:
      error = LaunchMma(/*tf32=*/false, rounds, out, &flops);
      break;
    case Arithmetic::kWgmmaTf32:
      error = LaunchWgmma(/*tf32=*/true, rounds, out, &flops);
      break;
    case Arithmetic::kWgmmaFp16:
      error = LaunchWgmma(/*tf32=*/false, rounds, out, &flops);
      break;
  }
  RETURN_IF_ERROR(ToStatus(error));
  return flops;
}

absl::StatusOr<int64_t> CountWords(const void* data, int64_t bytes,
                                   uint32_t value) {
  ASSIGN_OR_RETURN(const uint64_t total,
                   Total(data, bytes,
                         [&](const uint32_t* words, int64_t count,
                             unsigned long long* result) {
                           return LaunchCount(words, count, value, result);
                         }));
  return static_cast<int64_t>(total);
}

absl::StatusOr<uint64_t> Fingerprint(const void* data, int64_t bytes) {
  return Total(data, bytes, LaunchFingerprint);
}

}  // namespace convlab::cuda
