#include "kernels/measure/gpu_tensors.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "Eigen/Core"
#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/convolution/checking/poison.h"
#include "kernels/convolution/convolution.h"
#include "kernels/measure/gpu_loads.h"
#include "kernels/measure/renewal.h"

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

// Fills the memory with repetitions of `values`, converted to T.
template <typename T>
absl::Status UploadRepeated(const std::vector<float>& values, void* out,
                            int64_t bytes) {
  std::vector<T> converted(values.size());
  std::transform(values.begin(), values.end(), converted.begin(),
                 [](float value) { return static_cast<T>(value); });
  const int64_t period = values.size() * sizeof(T);
  for (int64_t done = 0; done < bytes; done += period) {
    RETURN_IF_ERROR(cuda::CopyToDevice(static_cast<char*>(out) + done,
                                       converted.data(),
                                       std::min(period, bytes - done)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FillRepeated(const std::vector<float>& values,
                          const cuda::DeviceBuffer& buffer) {
  return UploadRepeated<float>(values, buffer.data(), buffer.bytes());
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
  tensors.recipe_ = recipe;
  RETURN_IF_ERROR(type == ElementType::kFloat
                      ? tensors.Fill<float>(workers)
                      : tensors.Fill<Eigen::half>(workers));
  return tensors;
}

template <typename T>
absl::Status GpuTensors::Fill(Workers& workers) {
  const Problem& p = problem_;
  for (const auto& [buffer, name, elements] :
       {std::tuple(&x_, "x", p.input_elements()),
        std::tuple(&k_, "k", p.kernel_elements()),
        std::tuple(&y_, "y", p.output_elements())}) {
    ASSIGN_OR_RETURN(*buffer,
                     cuda::GuardedBuffer::Allocate(name, elements * sizeof(T)));
  }
  const int64_t image = p.input_elements() / p.batch;
  // At least so many images differ that an exchange of two would show.
  constexpr int64_t kFewestImages = 3;
  period_ = p;
  period_.batch =
      std::min(p.batch, std::max(kInputPeriod / image, kFewestImages));
  ConvolutionData data = MakeData(period_, recipe_);
  std::vector<float> placed(data.x.size());
  for (int64_t b = 0; b < period_.batch; ++b) {
    ForElements(layout_, p.channels, p.height, p.width,
                [&](int64_t plain, int64_t offset) {
                  placed[b * image + offset] = data.x[b * image + plain];
                });
  }
  ASSIGN_OR_RETURN(images_,
                   cuda::DeviceBuffer::Allocate(2 * placed.size() * sizeof(T)));
  RETURN_IF_ERROR(UploadRepeated<T>(placed, images_.data(), images_.bytes()));
  RETURN_IF_ERROR(RepeatImages(0));
  placed.resize(data.k.size());
  const int64_t K = p.kernel_size, filter = p.channels * K * K;
  for (int64_t m = 0; m < p.filters; ++m) {
    ForElements(layout_, p.channels, K, K, [&](int64_t plain, int64_t offset) {
      placed[m * filter + offset] = data.k[m * filter + plain];
    });
  }
  RETURN_IF_ERROR(UploadRepeated<T>(placed, k_.data(), k_.bytes()));
  ASSIGN_OR_RETURN(words_, cuda::WordSums::Create());
  ASSIGN_OR_RETURN(errors_, cuda::OutputErrors::Create());
  RETURN_IF_ERROR(Remember());

  reference_.emplace(
      p,
      [&](int64_t b, float* x) {
        std::copy_n(data.x.begin() + b % period_.batch * image, image, x);
      },
      data.k.data(), workers);
  first_k_ = std::move(data.k);
  return absl::OkStatus();
}

absl::Status GpuTensors::RepeatImages(int64_t first) {
  const int64_t period = images_.bytes() / 2;
  const char* const from =
      static_cast<const char*>(images_.data()) + first * period / period_.batch;
  for (int64_t done = 0; done < x_.bytes(); done += period) {
    RETURN_IF_ERROR(cuda::QueueCopy(static_cast<char*>(x_.data()) + done, from,
                                    std::min(period, x_.bytes() - done),
                                    /*stream=*/nullptr));
  }
  return absl::OkStatus();
}

absl::Status GpuTensors::Remember() {
  ASSIGN_OR_RETURN(x_fingerprint_, words_.Fingerprint(x_.data(), x_.bytes()));
  ASSIGN_OR_RETURN(k_fingerprint_, words_.Fingerprint(k_.data(), k_.bytes()));
  return absl::OkStatus();
}

absl::Status GpuTensors::Renew(bool ordinary, uint64_t seed) {
  if (layout_ != Layout::kNchw || type_ != ElementType::kFloat) {
    return absl::UnimplementedError("only NCHW in float32 is renewed");
  }
  const Renewal renewal =
      DrawRenewal(problem_, recipe_, ordinary, first_k_, seed);
  RETURN_IF_ERROR(RepeatImages(renewal.shift % period_.batch));
  if (renewal.new_place >= 0) {
    const int64_t image = renewal.new_image.size();
    RETURN_IF_ERROR(cuda::CopyToDevice(x_.floats() + renewal.new_place * image,
                                       renewal.new_image.data(),
                                       image * sizeof(float)));
  }
  RETURN_IF_ERROR(cuda::CopyToDevice(k_.data(), renewal.k.data(), k_.bytes()));
  return Remember();
}

absl::Status GpuTensors::Restore() {
  if (layout_ != Layout::kNchw || type_ != ElementType::kFloat) {
    return absl::UnimplementedError("only NCHW in float32 is restored");
  }
  for (const cuda::GuardedBuffer* const tensor : {&x_, &k_, &y_}) {
    RETURN_IF_ERROR(tensor->RestoreZones());
  }
  RETURN_IF_ERROR(RepeatImages(0));
  RETURN_IF_ERROR(cuda::CopyToDevice(k_.data(), first_k_.data(), k_.bytes()));
  return Remember();
}

absl::StatusOr<MeasuredError> GpuTensors::WholeError() const {
  return errors_.Whole(problem_, x_.floats(), k_.floats(), y_.floats());
}

absl::StatusOr<MeasuredError> GpuTensors::DrawnError(uint64_t seed) const {
  return errors_.Drawn(problem_, x_.floats(), k_.floats(), y_.floats(),
                       kDrawnOutputs, seed);
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

absl::Status GpuTensors::CheckUse() const {
  ASSIGN_OR_RETURN(const uint64_t x, words_.Fingerprint(x_.data(), x_.bytes()));
  ASSIGN_OR_RETURN(const uint64_t k, words_.Fingerprint(k_.data(), k_.bytes()));
  if (x != x_fingerprint_ || k != k_fingerprint_) {
    return absl::DataLossError("the inputs or the weights were changed");
  }
  for (const cuda::GuardedBuffer* const tensor : {&x_, &k_, &y_}) {
    ASSIGN_OR_RETURN(const std::string damage, tensor->CheckZones(words_));
    if (!damage.empty()) return absl::DataLossError(damage);
  }
  return absl::OkStatus();
}

}  // namespace convlab
