#include "kernels/measure/gpu_tensors.h"

#include <algorithm>
#include <vector>

#include "Eigen/Core"
#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/convolution/checking/poison.h"
#include "kernels/convolution/convolution.h"
#include "kernels/measure/gpu_loads.h"

namespace convlab {
namespace {

// Calls visit(index in CHW, index in the layout) for each element of an image.
template <typename Visit>
void ForElements(Layout layout, int64_t C, int64_t H, int64_t W, Visit visit) {
  int64_t plain = 0;
  for (int64_t c = 0; c < C; ++c) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t w = 0; w < W; ++w, ++plain) {
        visit(plain, layout == Layout::kNchw ? plain : (h * W + w) * C + c);
      }
    }
  }
}

// Fills the buffer with repetitions of `values`, converted to T.
template <typename T>
absl::Status UploadRepeated(const std::vector<float>& values,
                            const cuda::DeviceBuffer& buffer) {
  std::vector<T> converted(values.size());
  std::transform(values.begin(), values.end(), converted.begin(),
                 [](float value) { return static_cast<T>(value); });
  const int64_t period = values.size() * sizeof(T);
  for (int64_t done = 0; done < buffer.bytes(); done += period) {
    RETURN_IF_ERROR(cuda::CopyToDevice(
        static_cast<char*>(buffer.data()) + done, converted.data(),
        std::min(period, buffer.bytes() - done)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FillRepeated(const std::vector<float>& values,
                          const cuda::DeviceBuffer& buffer) {
  return UploadRepeated<float>(values, buffer);
}

absl::StatusOr<GpuTensors> GpuTensors::Create(const Problem& problem,
                                              Workers& workers, Layout layout,
                                              ElementType type,
                                              const Recipe& recipe) {
  RETURN_IF_ERROR(CheckProblem(problem));
  RETURN_IF_ERROR(cuda::FindDevice().status());
  GpuTensors tensors;
  tensors.problem_ = problem;
  tensors.layout_ = layout;
  tensors.type_ = type;
  RETURN_IF_ERROR(type == ElementType::kFloat
                      ? tensors.Fill<float>(recipe, workers)
                      : tensors.Fill<Eigen::half>(recipe, workers));
  return tensors;
}

template <typename T>
absl::Status GpuTensors::Fill(const Recipe& recipe, Workers& workers) {
  const Problem& p = problem_;
  for (const auto& [buffer, elements] :
       {std::pair(&x_, p.input_elements()), std::pair(&k_, p.kernel_elements()),
        std::pair(&y_, p.output_elements())}) {
    ASSIGN_OR_RETURN(*buffer,
                     cuda::DeviceBuffer::Allocate(elements * sizeof(T)));
  }
  const int64_t image = p.input_elements() / p.batch;
  // At least so many images differ that an exchange of two would show.
  constexpr int64_t kFewestImages = 3;
  Problem period = p;
  period.batch =
      std::min(p.batch, std::max(kInputPeriod / image, kFewestImages));
  const ConvolutionData data = MakeData(period, recipe);
  std::vector<float> placed(data.x.size());
  for (int64_t b = 0; b < period.batch; ++b) {
    ForElements(layout_, p.channels, p.height, p.width,
                [&](int64_t plain, int64_t offset) {
                  placed[b * image + offset] = data.x[b * image + plain];
                });
  }
  RETURN_IF_ERROR(UploadRepeated<T>(placed, x_));
  placed.resize(data.k.size());
  const int64_t K = p.kernel_size, filter = p.channels * K * K;
  for (int64_t m = 0; m < p.filters; ++m) {
    ForElements(layout_, p.channels, K, K, [&](int64_t plain, int64_t offset) {
      placed[m * filter + offset] = data.k[m * filter + plain];
    });
  }
  RETURN_IF_ERROR(UploadRepeated<T>(placed, k_));
  ASSIGN_OR_RETURN(words_, cuda::WordSums::Create());
  ASSIGN_OR_RETURN(x_fingerprint_, words_.Fingerprint(x_.data(), x_.bytes()));
  ASSIGN_OR_RETURN(k_fingerprint_, words_.Fingerprint(k_.data(), k_.bytes()));

  reference_.emplace(
      p,
      [&](int64_t b, float* x) {
        std::copy_n(data.x.begin() + b % period.batch * image, image, x);
      },
      data.k.data(), workers);
  return absl::OkStatus();
}

absl::StatusOr<MeasuredError> GpuTensors::Verify(
    const std::function<absl::Status()>& run) const {
  RETURN_IF_ERROR(cuda::FillBytes(y_.data(), kPoison, y_.bytes()));
  RETURN_IF_ERROR(run());
  RETURN_IF_ERROR(cuda::Synchronize());
  ASSIGN_OR_RETURN(const int64_t unwritten,
                   words_.Count(y_.data(), y_.bytes(), kPoisonedWord));
  if (unwritten > 0) {
    return absl::DataLossError(
        absl::StrCat("the output was not written completely:  ", unwritten,
                     " words of 32 bits are missing"));
  }
  return type_ == ElementType::kFloat ? Error<float>() : Error<Eigen::half>();
}

template <typename T>
absl::StatusOr<MeasuredError> GpuTensors::Error() const {
  const Problem& p = problem_;
  const int64_t image = p.output_elements() / p.batch;
  std::vector<T> read(image);
  return reference_->Error([&](int64_t b, float* y) -> absl::Status {
    RETURN_IF_ERROR(cuda::CopyToHost(
        read.data(), static_cast<const T*>(y_.data()) + b * image,
        image * sizeof(T)));
    ForElements(layout_, p.filters, p.output_height(), p.output_width(),
                [&](int64_t plain, int64_t offset) {
                  y[plain] = static_cast<float>(read[offset]);
                });
    return absl::OkStatus();
  });
}

absl::Status GpuTensors::CheckInputs() const {
  ASSIGN_OR_RETURN(const uint64_t x, words_.Fingerprint(x_.data(), x_.bytes()));
  ASSIGN_OR_RETURN(const uint64_t k, words_.Fingerprint(k_.data(), k_.bytes()));
  if (x == x_fingerprint_ && k == k_fingerprint_) return absl::OkStatus();
  return absl::DataLossError("the inputs or the weights were changed");
}

}  // namespace convlab
