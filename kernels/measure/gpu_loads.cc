#include "kernels/measure/gpu_loads.h"

#include "common/status/status.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/error.h"
#include "kernels/measure/load_kernels.h"
#include "kernels/measure/word_kernels.h"

namespace convlab::cuda {
namespace {

static_assert(kSinkBytes == kSinkFloats * sizeof(float));

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

absl::StatusOr<WordSums> WordSums::Create() {
  WordSums sums;
  ASSIGN_OR_RETURN(sums.result_,
                   DeviceBuffer::Allocate(sizeof(unsigned long long)));
  // The first launches take memory for their code.
  RETURN_IF_ERROR(sums.Count(sums.result_.data(), 4, 0).status());
  RETURN_IF_ERROR(sums.Fingerprint(sums.result_.data(), 4).status());
  return sums;
}

// Runs launch(words, count, result) and reads the result.
template <typename Launch>
absl::StatusOr<uint64_t> WordSums::Total(const void* data, int64_t bytes,
                                         Launch launch) const {
  unsigned long long total = 0;
  RETURN_IF_ERROR(FillBytes(result_.data(), 0, sizeof(total)));
  RETURN_IF_ERROR(
      ToStatus(launch(static_cast<const uint32_t*>(data), bytes / 4,
                      static_cast<unsigned long long*>(result_.data()))));
  RETURN_IF_ERROR(CopyToHost(&total, result_.data(), sizeof(total)));
  return total;
}

absl::StatusOr<int64_t> WordSums::Count(const void* data, int64_t bytes,
                                        uint32_t value) const {
  ASSIGN_OR_RETURN(const uint64_t total,
                   Total(data, bytes,
                         [&](const uint32_t* words, int64_t count,
                             unsigned long long* result) {
                           return LaunchCount(words, count, value, result);
                         }));
  return static_cast<int64_t>(total);
}

absl::StatusOr<uint64_t> WordSums::Fingerprint(const void* data,
                                               int64_t bytes) const {
  return Total(data, bytes, LaunchFingerprint);
}

}  // namespace convlab::cuda
