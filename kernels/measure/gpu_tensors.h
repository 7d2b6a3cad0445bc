// The tensors of a convolution that is measured on the GPU, and whether it was
// right. What every measurement on the GPU begins with, ours and the library's.
#ifndef KERNELS_MEASURE_GPU_TENSORS_H_
#define KERNELS_MEASURE_GPU_TENSORS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/problem.h"
#include "kernels/cuda/device.h"

namespace convlab {

enum class Layout { kNchw, kNhwc };  // of x and y; k is MCKK or MKKC
enum class ElementType { kFloat, kHalf };

class GpuTensors {
 public:
  // Random inputs and weights in [-1, 1) on the GPU, in that layout and type.
  // The inputs repeat after some millions of values. Some of the images, the
  // first and the last among them, are computed in float64. Unavailable without
  // a GPU, ResourceExhausted without enough memory.
  static absl::StatusOr<GpuTensors> Create(
      const Problem& problem, Workers& workers, Layout layout = Layout::kNchw,
      ElementType type = ElementType::kFloat);

  const void* x() const { return x_.data(); }
  const void* k() const { return k_.data(); }
  void* y() const { return y_.data(); }

  // Poisons y, calls `run`, which fills it, and returns the relative error of
  // the computed images. DataLoss if any element of y, in whatever image, was
  // not written.
  absl::StatusOr<double> Verify(const std::function<absl::Status()>& run) const;

  // DataLoss if x or k are no longer what they were.
  absl::Status CheckInputs() const;

  // All tensors, each once.
  int64_t bytes() const { return x_.bytes() + k_.bytes() + y_.bytes(); }

 private:
  GpuTensors() = default;
  template <typename T>
  absl::Status Fill(Workers& workers);
  template <typename T>
  absl::StatusOr<double> Error() const;

  Problem problem_;
  Layout layout_ = Layout::kNchw;
  ElementType type_ = ElementType::kFloat;
  cuda::DeviceBuffer x_, k_, y_;
  uint64_t x_fingerprint_ = 0, k_fingerprint_ = 0;
  std::vector<int64_t> checked_;   // images
  std::vector<double> reference_;  // theirs, one after another, in NCHW
};

}  // namespace convlab

#endif  // KERNELS_MEASURE_GPU_TENSORS_H_
