// The reference of a convolution whose batch is too large to check as a whole:
// measurements compare some of its images.
#ifndef KERNELS_MEASURE_SAMPLED_REFERENCE_H_
#define KERNELS_MEASURE_SAMPLED_REFERENCE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// The images of a batch that are compared with the reference, in ascending
// order: all of a small batch, otherwise some at equal distances, including the
// first and the last.
std::vector<int64_t> CheckedImages(int64_t batch);

class SampledReference {
 public:
  // Writes image b of the input or of the output to `image`, as CHW.
  using ReadInput = std::function<void(int64_t b, float* image)>;
  using ReadOutput = std::function<absl::Status(int64_t b, float* image)>;

  // Computes the checked images of the valid `problem` in float64; k is MCKK.
  SampledReference(const Problem& problem, const ReadInput& read,
                   const float* k, Workers& workers);

  // The relative L2 error of the checked images (RelativeError), or the error
  // of `read`.
  absl::StatusOr<double> Error(const ReadOutput& read) const;

 private:
  std::vector<int64_t> images_;
  std::vector<double> y_;  // of these images
};

}  // namespace convlab

#endif  // KERNELS_MEASURE_SAMPLED_REFERENCE_H_
