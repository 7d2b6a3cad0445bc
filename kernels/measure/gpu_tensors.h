// The tensors of a convolution that is measured on the GPU, and its
// verification. Every measurement on the GPU begins with these, our variants'
// and the library's.
#ifndef KERNELS_MEASURE_GPU_TENSORS_H_
#define KERNELS_MEASURE_GPU_TENSORS_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/checking/recipe.h"
#include "kernels/convolution/problem.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/gpu_loads.h"
#include "kernels/measure/sampled_reference.h"

namespace convlab {

enum class Layout { kNchw, kNhwc };  // of x and y; k is MCKK or MKKC
enum class ElementType { kFloat, kHalf };

// Inputs of measurements repeat after about this many values, which no
// algorithm can exploit.
inline constexpr int64_t kInputPeriod = (int64_t{1} << 22) + 1;

// Fills the buffer with repetitions of `values`.
absl::Status FillRepeated(const std::vector<float>& values,
                          const cuda::DeviceBuffer& buffer);

class GpuTensors {
 public:
  // Creates the recipe's inputs and weights on the GPU, in that layout and
  // type: by default random values in [-1, 1]. Images repeat after some
  // millions of values. The reference in float64 is computed for some of the
  // images, including the first and the last. Returns Unavailable without a GPU
  // and ResourceExhausted without enough memory. The workers must outlive the
  // tensors.
  static absl::StatusOr<GpuTensors> Create(
      const Problem& problem, Workers& workers, Layout layout = Layout::kNchw,
      ElementType type = ElementType::kFloat, const Recipe& recipe = Recipe());

  const void* x() const { return x_.data(); }
  const void* k() const { return k_.data(); }
  void* y() const { return y_.data(); }

  // Poisons y, calls `run`, which fills it, and returns the error of the
  // computed images. Returns DataLoss if any element of y, in any image, was
  // not written.
  absl::StatusOr<MeasuredError> Verify(
      const std::function<absl::Status()>& run) const;

  // Returns DataLoss if x or k have changed.
  absl::Status CheckInputs() const;

  // The bytes of all tensors.
  int64_t bytes() const { return x_.bytes() + k_.bytes() + y_.bytes(); }

 private:
  GpuTensors() = default;
  template <typename T>
  absl::Status Fill(const Recipe& recipe, Workers& workers);
  template <typename T>
  absl::StatusOr<MeasuredError> Error() const;

  Problem problem_;
  Layout layout_ = Layout::kNchw;
  ElementType type_ = ElementType::kFloat;
  cuda::DeviceBuffer x_, k_, y_;
  cuda::WordSums words_;
  uint64_t x_fingerprint_ = 0, k_fingerprint_ = 0;
  std::optional<SampledReference> reference_;
};

}  // namespace convlab

#endif  // KERNELS_MEASURE_GPU_TENSORS_H_
