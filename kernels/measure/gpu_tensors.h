// The tensors of a convolution that is measured on the GPU, and its
// verification. Every measurement on the GPU begins with these, our variants'
// and the library's.
#ifndef KERNELS_MEASURE_GPU_TENSORS_H_
#define KERNELS_MEASURE_GPU_TENSORS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/checking/recipe.h"
#include "kernels/convolution/problem.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/gpu_loads.h"
#include "kernels/measure/guarded_buffer.h"
#include "kernels/measure/output_errors.h"
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
  // tensors. All tensors lie between red zones.
  static absl::StatusOr<GpuTensors> Create(
      const Problem& problem, Workers& workers, Layout layout = Layout::kNchw,
      ElementType type = ElementType::kFloat, const Recipe& recipe = Recipe());

  // Of tensors in NCHW and float32: changes what x and k hold, so that no
  // earlier output is right; `ordinary` as in renewal.h.
  absl::Status Renew(bool ordinary, uint64_t seed);
  // Makes x, k and the red zones what they were at first, on which Verify
  // relies.
  absl::Status Restore();

  const void* x() const { return x_.data(); }
  const void* k() const { return k_.data(); }
  void* y() const { return y_.data(); }
  int64_t y_bytes() const { return y_.bytes(); }

  // Poisons y, calls `run`, which fills it, and returns the error of the
  // computed images. Returns DataLoss if any element of y, in any image, was
  // not written.
  absl::StatusOr<MeasuredError> Verify(
      const std::function<absl::Status()>& run) const;

  // Of tensors in NCHW and float32: the error of all of y, or of kDrawnOutputs
  // elements that the seed draws, for what x and k hold now.
  absl::StatusOr<MeasuredError> WholeError() const;
  absl::StatusOr<MeasuredError> DrawnError(uint64_t seed) const;

  // Returns DataLoss if something but Renew has changed x or k, or if something
  // was written beside a tensor.
  absl::Status CheckUse() const;

  // The bytes of all tensors.
  int64_t bytes() const { return x_.bytes() + k_.bytes() + y_.bytes(); }

 private:
  GpuTensors() = default;
  template <typename T>
  absl::Status Fill(Workers& workers);
  template <typename T>
  absl::StatusOr<MeasuredError> Error() const;
  // Fills x with repetitions of the images, from number `first` on.
  absl::Status RepeatImages(int64_t first);
  absl::Status Remember();

  Problem problem_;
  Problem period_;  // of as many images as differ
  Recipe recipe_;
  Layout layout_ = Layout::kNchw;
  ElementType type_ = ElementType::kFloat;
  cuda::GuardedBuffer x_, k_, y_;
  cuda::DeviceBuffer images_;   // the period, twice
  std::vector<float> first_k_;  // MCKK
  cuda::WordSums words_;
  cuda::OutputErrors errors_;
  uint64_t x_fingerprint_ = 0, k_fingerprint_ = 0;
  std::optional<SampledReference> reference_;
};

}  // namespace convlab

#endif  // KERNELS_MEASURE_GPU_TENSORS_H_
