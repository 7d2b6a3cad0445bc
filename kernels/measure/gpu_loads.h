// Kernels that each load one part of the GPU, to measure its rate, and kernels
// that a measurement needs around the operation. All work in the default stream
// on device memory, and return Unavailable in a build without the CUDA Toolkit.
#ifndef KERNELS_MEASURE_GPU_LOADS_H_
#define KERNELS_MEASURE_GPU_LOADS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"

namespace convlab::cuda {

// Keeps the stream waiting for that long and the GPU idle.
absl::Status StartWait(int microseconds);

// Write, or read and write, `bytes`, a multiple of 16.
absl::Status StartFill(void* out, int64_t bytes);
absl::Status StartCopy(const void* in, void* out, int64_t bytes);

enum class Arithmetic {
  kFp32,       // fused multiply-adds
  kMmaTf32,    // tensor cores by mma.sync, operands in registers, sums in
  kMmaFp16,    //   float32
  kWgmmaTf32,  // tensor cores by wgmma, operands in shared memory; Hopper's
  kWgmmaFp16,
};

// Does `rounds` rounds of that arithmetic on all multiprocessors and writes
// some result to `sink`, of kSinkBytes. Returns the number of FLOPs, or 0
// without doing anything if the GPU or the build lacks the instructions.
inline constexpr int64_t kSinkBytes = 1024;
absl::StatusOr<double> StartArithmetic(Arithmetic kind, int rounds, void* sink);

// Sums over the 32-bit words of device memory. All functions wait for the
// device. Needs no more memory once it is created.
class WordSums {
 public:
  WordSums() = default;
  static absl::StatusOr<WordSums> Create();

  // How many words of `data` equal `value`.
  absl::StatusOr<int64_t> Count(const void* data, int64_t bytes,
                                uint32_t value) const;
  // A number that depends on each word and its position.
  absl::StatusOr<uint64_t> Fingerprint(const void* data, int64_t bytes) const;

 private:
  template <typename Launch>
  absl::StatusOr<uint64_t> Total(const void* data, int64_t bytes,
                                 Launch launch) const;

  DeviceBuffer result_;
};

}  // namespace convlab::cuda

#endif  // KERNELS_MEASURE_GPU_LOADS_H_
