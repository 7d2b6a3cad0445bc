#include "kernels/measure/sampled_reference.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "kernels/convolution/checking/reference.h"

namespace convlab {

std::vector<int64_t> CheckedImages(int64_t batch) {
  constexpr int64_t kMost = 5;
  const int64_t count = std::min(kMost, batch);
  std::vector<int64_t> images;
  for (int64_t i = 0; i < count; ++i) {
    images.push_back(count == 1 ? 0 : i * (batch - 1) / (count - 1));
  }
  return images;
}

absl::Status CheckMeasured(const MeasuredError& error, AccuracyClass accuracy,
                           bool ordinary) {
  if (ordinary) RETURN_IF_ERROR(CheckError(error.relative, accuracy));
  if (accuracy != AccuracyClass::kFp32 || error.worst.ok()) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrFormat(
      "an output breaks the contract of class fp32: c = %.3g, expected at most "
      "%.3g",
      error.worst.factor, error.worst.allowed));
}

SampledReference::SampledReference(const Problem& problem,
                                   const ReadInput& read, const float* k,
                                   Workers& workers)
    : images_(CheckedImages(problem.batch)), workers_(&workers) {
  Problem checked = problem;
  checked.batch = images_.size();
  const int64_t image = checked.input_elements() / checked.batch;
  std::vector<float> x(checked.input_elements());
  for (size_t i = 0; i < images_.size(); ++i) {
    read(images_[i], x.data() + i * image);
  }
  reference_.emplace(checked, x.data(), k, workers);
}

absl::StatusOr<MeasuredError> SampledReference::Error(
    const ReadOutput& read) const {
  const std::vector<double>& expected = reference_->y();
  const int64_t image = expected.size() / images_.size();
  std::vector<float> y(expected.size());
  for (size_t i = 0; i < images_.size(); ++i) {
    RETURN_IF_ERROR(read(images_[i], y.data() + i * image));
  }
  return MeasuredError{RelativeError(y.data(), expected),
                       reference_->Worst(y.data(), *workers_)};
}

}  // namespace convlab
