#include "kernels/measure/sampled_reference.h"

#include <algorithm>

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

SampledReference::SampledReference(const Problem& problem,
                                   const ReadInput& read, const float* k,
                                   Workers& workers)
    : images_(CheckedImages(problem.batch)) {
  Problem checked = problem;
  checked.batch = images_.size();
  const int64_t image = checked.input_elements() / checked.batch;
  std::vector<float> x(checked.input_elements());
  for (size_t i = 0; i < images_.size(); ++i) {
    read(images_[i], x.data() + i * image);
  }
  y_ = ReferenceConvolution(checked, x.data(), k, workers);
}

absl::StatusOr<double> SampledReference::Error(const ReadOutput& read) const {
  const int64_t image = y_.size() / images_.size();
  std::vector<float> y(y_.size());
  for (size_t i = 0; i < images_.size(); ++i) {
    RETURN_IF_ERROR(read(images_[i], y.data() + i * image));
  }
  return RelativeError(y.data(), y_);
}

}  // namespace convlab
